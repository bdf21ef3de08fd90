package dump

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Redacted reports whether values of an object have been replaced: those of a Secret
// by the text of oc adm inspect ("12 bytes long"), or any by the x of an Insights
// archive ("xxxx-xx"). What such an object contains is not known; which keys it has
// is. MachineConfigs of Insights archives, which lack files and users, are redacted,
// too: two of them that look alike may differ. It is false for nil.
func Redacted(obj *unstructured.Unstructured) bool {
	if obj == nil {
		return false
	}
	if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		for _, part := range []string{"data", "stringData"} {
			values, _ := obj.Object[part].(map[string]any)
			for _, v := range values {
				if s, ok := v.(string); ok && elided(s) {
					return true
				}
			}
		}
	}
	_, cut := obj.GetAnnotations()[insightsSize]
	return cut || anonymised(obj.Object)
}

// insightsSize is the annotation of an object of an Insights archive that has less than
// the cluster's.
const insightsSize = "insights.operator.openshift.io/cr-size"

// anonymised reports whether a value has a text that an Insights archive replaced.
func anonymised(value any) bool {
	switch value := value.(type) {
	case string:
		return len(value) >= len("xxxx") && onlyX.MatchString(value)
	case []any:
		return slices.ContainsFunc(value, anonymised)
	case map[string]any:
		for _, v := range value {
			if anonymised(v) {
				return true
			}
		}
	}
	return false
}

var onlyX = regexp.MustCompile(`^x+([-.:/]+x+)*$`)

var lengthOnly = regexp.MustCompile(`^[0-9]+ bytes long$`)

// elided looks for the text in a value, which base64 may hide.
func elided(value string) bool {
	const longest = 64
	if len(value) > longest {
		return false
	}
	if lengthOnly.MatchString(value) {
		return true
	}
	plain, err := base64.StdEncoding.DecodeString(value)
	return err == nil && lengthOnly.Match(plain)
}

// secrecy describes what was done to the secrets of an object.
type secrecy int

const (
	nothingSecret secrecy = iota
	inTheClear            // it has one that can be read
	redacted              // one was taken out, and none can be read
)

// publicKeys are those of a Secret that oc adm inspect leaves as they are.
var publicKeys = []string{"tls.crt", "ca.crt", "service-ca.crt"}

// secretAnnotations are those that oc adm inspect empties.
var secretAnnotations = []string{"openshift.io/token-secret.value", "kubectl.kubernetes.io/last-applied-configuration"}

// secrecyOf looks at the places that oc adm inspect redacts.
func secrecyOf(kind schema.GroupKind, text string) secrecy {
	var s secrecy
	note := func(taken bool) {
		switch {
		case !taken:
			s = inTheClear
		case s == nothingSecret:
			s = redacted
		}
	}
	for key, value := range fields(field(text, "metadata", "annotations")) {
		if slices.Contains(secretAnnotations, key) && (kind.Kind == "Secret" || value == `""`) {
			note(value == `""`)
		}
	}
	switch kind {
	case schema.GroupKind{Kind: "Secret"}:
		for key, value := range fields(field(text, "data")) {
			if v, ok := textOf(value); ok && v != "" && !slices.Contains(publicKeys, key) {
				note(elided(v))
			}
		}
	case schema.GroupKind{Group: "route.openshift.io", Kind: "Route"}:
		if value := field(text, "spec", "tls", "key"); value != "" && value != "null" {
			note(value == `""`)
		}
	case schema.GroupKind{Group: "config.openshift.io", Kind: "Proxy"}:
		for _, part := range []string{"spec", "status"} {
			for _, name := range []string{"httpProxy", "httpsProxy"} {
				address, _ := textOf(field(text, part, name))
				if has, taken := password(address); has {
					note(taken)
				}
			}
		}
	}
	return s
}

// password reports whether an address has a password, and whether asterisks
// took its place.
func password(address string) (has, taken bool) {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		word, set := u.User.Password()
		return set, strings.Trim(word, "*") == ""
	}
	// One that net/url does not read may still have one.
	_, rest, _ := strings.Cut(address, "://")
	user, _, found := strings.Cut(rest, "@")
	_, word, set := strings.Cut(user, ":")
	return found && set, strings.Trim(word, "*") == ""
}
