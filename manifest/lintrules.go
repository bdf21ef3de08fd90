package manifest

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// The rules whose faults are found while a payload is loaded.
const (
	lintMissingImage = "image-missing"
	lintNoValue      = "no-value"
	lintTemplate     = "template"
)

// lintCheck is a rule with what checks it.
type lintCheck struct {
	rule  LintRule
	check func(*linter)
}

var lintChecks = []lintCheck{
	{LintRule{"annotations", "Error", "An annotation that is not a string. All annotations of the object count as absent then, so that it is excluded from every cluster. Of all manifests."}, (*linter).checkAnnotations},
	{LintRule{"capability", "Error", "A capability in the annotation capability.openshift.io/name that is not known. Clusters that do not know it exclude the object. Of all manifests."}, (*linter).checkCapabilities},
	{LintRule{"component-split", "Warning", "A component that comes back within its runlevel, with others between. An update has no order between its parts. Of all that is loaded."}, (*linter).checkSplit},
	{LintRule{"crd-missing", "Error", "A kind that no CustomResourceDefinition of the release defines and that neither Kubernetes nor OpenShift's API servers serve. One finding for each kind that is applied."}, (*linter).checkDefinitions},
	{LintRule{"crd-order", "Warning", "A custom resource that an update may apply before its CustomResourceDefinition. It fails until the definition is there. Of what is applied."}, (*linter).checkDefinitionOrder},
	{LintRule{"crd-version", "Error", "A custom resource in a version that its CustomResourceDefinition does not serve. Of what is applied."}, (*linter).checkVersions},
	{LintRule{"delete-conflict", "Error", "A manifest that deletes an object which another one applies. The object comes and goes. Of what is included."}, (*linter).checkDeleteConflicts},
	{LintRule{"delete-value", "Error", "An annotation release.openshift.io/delete with another value than true. Applying it fails. Of what is included."}, (*linter).checkDeleteValues},
	{LintRule{"duplicate", "Warning", "Several manifests of one object. What the object becomes depends on their order, which may be none. Of what is applied."}, (*linter).checkDuplicates},
	{LintRule{"file-name", "Warning", "A file name without runlevel and component, as in 0000_50_dns_namespace.yaml. Such a file is a barrier between those before and after it. Of all manifests."}, (*linter).checkNames},
	{LintRule{"image", "Error", "A pull spec in a field image, in an environment variable, or with a digest anywhere, that is neither the release image nor among the images of image-references. Who mirrors the release does not get it. Of what is applied."}, (*linter).checkImages},
	{LintRule{lintMissingImage, "Error", "A template that looks up an image that the payload does not have, as by index .Images: it becomes the empty text. What a condition around it asks for is not meant. Of all files of manifests/."}, (*linter).checkMissingImages},
	{LintRule{"level-width", "Warning", "A runlevel with more or fewer digits than most. Runlevels are in the order of texts, so that 100 comes before 20. Of all manifests."}, (*linter).checkWidths},
	{LintRule{"namespace-order", "Warning", "An object that an update may apply before its Namespace. It fails until the namespace is there. Of what is applied."}, (*linter).checkNamespaceOrder},
	{LintRule{lintNoValue, "Error", "The text <no value> in what a template became: it refers to an image that the payload does not have. Of all files of manifests/."}, (*linter).checkNoValue},
	{LintRule{"operator-versions", "Error", "A ClusterOperator without versions in its status. An update fails at it, since it cannot tell when the operator is done. Of what is applied."}, (*linter).checkOperators},
	{LintRule{lintTemplate, "Error", "A template that does not parse or execute: the whole file is skipped. Of all files of manifests/."}, (*linter).checkTemplates},
}

func (l *linter) checkAnnotations() {
	for _, m := range l.all {
		if m.meta.unreadable {
			l.report(m, "an annotation is not a string, so all its annotations count as absent")
		}
	}
}

func (l *linter) checkCapabilities() {
	known := names(configv1.KnownClusterVersionCapabilities)
	if l.filter.Capabilities != nil {
		known = known.Union(l.filter.Capabilities.Known)
	}
	for _, m := range l.all {
		for _, name := range requiredCapabilities(m.Annotations()) {
			if !known.Has(name) {
				l.report(m, "capability %q is not known", name)
			}
		}
	}
}

func (l *linter) checkSplit() {
	for _, s := range splits(l.payload.Tasks()) {
		l.report(s.again.Manifest, "component %s comes back in runlevel %s: no order after %s", s.component, s.level, s.first.Manifest.Filename)
	}
}

func (l *linter) checkDeleteConflicts() {
	applied := make(map[Identity]*Manifest)
	for _, m := range l.applied {
		applied[m.Identity()] = m
	}
	for _, m := range l.deletes {
		if other, ok := applied[m.Identity()]; ok {
			l.report(m, "deletes what %s applies", other.Filename)
		}
	}
}

func (l *linter) checkDeleteValues() {
	for _, m := range l.deletes {
		if value := m.Annotations()[annotationDelete]; value != "true" {
			l.report(m, "release.openshift.io/delete is %q, not true", value)
		}
	}
}

func (l *linter) checkDuplicates() {
	first := make(map[Identity]*Manifest)
	for _, m := range l.applied {
		if other, ok := first[m.Identity()]; ok {
			l.report(m, "the same object is in %s, document %d", other.Filename, other.Document)
		} else {
			first[m.Identity()] = m
		}
	}
}

// files calls f for each file name, once.
func (l *linter) files(f func(name string)) {
	seen := sets.New[string]()
	for _, m := range l.all {
		if !seen.Has(m.Filename) {
			seen.Insert(m.Filename)
			f(m.Filename)
		}
	}
}

func (l *linter) checkNames() {
	l.files(func(name string) {
		if _, _, ok := ParseName(name); !ok {
			l.reportFile(name, "the name has no runlevel and component, as in 0000_50_dns_namespace.yaml")
		}
	})
}

func (l *linter) checkWidths() {
	count := make(map[int]int) // of files by width
	l.files(func(name string) {
		if level, _, ok := ParseName(name); ok {
			count[len(level)]++
		}
	})
	most := 0
	for width, n := range count {
		if n > count[most] || n == count[most] && width < most {
			most = width
		}
	}
	l.files(func(name string) {
		if level, _, ok := ParseName(name); ok && len(level) != most {
			l.reportFile(name, fmt.Sprintf("runlevel %s has %d digits, most have %d", level, len(level), most))
		}
	})
}

func (l *linter) checkOperators() {
	for _, m := range l.applied {
		if m.GVK().GroupKind() == clusterOperatorKind && len(m.OperandVersions()) == 0 {
			l.report(m, "status.versions has no version")
		}
	}
}

func (l *linter) checkTemplates()     { l.reportWarnings(lintTemplate) }
func (l *linter) checkMissingImages() { l.reportWarnings(lintMissingImage) }

// reportWarnings takes up what was found while the payload was loaded.
func (l *linter) reportWarnings(rule string) {
	for _, w := range l.payload.Warnings {
		if w.Rule == rule {
			l.reportFile(w.File, w.Message)
		}
	}
}

// checkNoValue finds the objects with the text in the files that have it.
func (l *linter) checkNoValue() {
	escaped := []byte(strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(noValue))
	objects := make(map[string][]*Manifest) // by file, for the manifests that have it
	for _, m := range l.all {
		if bytes.Contains(m.Raw, escaped) || bytes.Contains(m.Raw, []byte(noValue)) {
			objects[m.Filename] = append(objects[m.Filename], m)
		}
	}
	for _, w := range l.payload.Warnings {
		if w.Rule != lintNoValue {
			continue
		}
		found := objects[path.Base(w.File)]
		for _, m := range found {
			l.report(m, "%s", w.Message)
		}
		if len(found) == 0 {
			l.reportFile(w.File, w.Message)
		}
	}
}
