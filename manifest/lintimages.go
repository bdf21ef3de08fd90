package manifest

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

var (
	// byDigest finds pull specs with a digest in a text.
	byDigest = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9.:/_-]*@sha256:[0-9a-f]{64}`)
	// byTag is a text that is a pull spec with a tag, of a registry with a domain.
	byTag = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]+)?(/[a-z0-9._-]+)+:[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

func (l *linter) checkImages() {
	known := sets.New(l.payload.Release.Image)
	for _, pull := range l.payload.Images {
		known.Insert(pull)
	}
	for _, m := range l.applied {
		if m.GVK().GroupKind() == crdKind || m.Object() == nil {
			continue // schemas hold examples
		}
		found := sets.New[string]()
		pullSpecs(m.Object().Object, "", found)
		for _, pull := range slices.Sorted(maps.Keys(found)) {
			if !known.Has(pull) {
				l.report(m, "the image %s is not among those of the release", pull)
			}
		}
	}
}

// pullSpecs collects the pull specs in a value under a key.
func pullSpecs(value any, key string, found sets.Set[string]) {
	switch v := value.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "value" && v["name"] == nil {
				k = "" // not of a variable
			}
			pullSpecs(e, k, found)
		}
	case []any:
		for _, e := range v {
			pullSpecs(e, "", found)
		}
	case string:
		isImage := key == "image" && v != "" && !strings.Contains(v, "://") && !strings.ContainsAny(v, " \n")
		if isImage || key == "value" && byTag.MatchString(v) {
			found.Insert(v)
			return
		}
		if strings.Contains(v, "@sha256:") {
			found.Insert(byDigest.FindAllString(v, -1)...)
		}
	}
}
