package memory

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// maxData is how much a ConfigMap or a Secret may hold.
const maxData = corev1.MaxSecretSize

func validConfigMap(n node) {
	total := 0
	for _, name := range []string{"data", "binaryData"} {
		m := n.get(name)
		for _, key := range m.keys() {
			for _, msg := range validation.IsConfigMapKey(key) {
				n.fail(field.Invalid(m.path().Key(key), key, msg))
			}
			if name == "data" && n.get("binaryData", key).set() {
				n.fail(field.Invalid(m.path().Key(key), key, "duplicate of key present in binaryData"))
			}
			if value := m.get(key).text(); name == "data" {
				total += len(value)
			} else {
				total += decodedLen(value)
			}
		}
	}
	if total > maxData {
		n.fail(field.TooLong(field.NewPath(""), "", maxData))
	}
}

func decodedLen(s string) int {
	return base64.StdEncoding.DecodedLen(len(s)) - strings.Count(s[max(0, len(s)-2):], "=")
}

func updatedConfigMap(old, n node) { unchangeable(old, n, "data", "binaryData") }

// unchangeable judges what claims to be immutable.
func unchangeable(old, n node, names ...string) {
	const detail = "field is immutable when `immutable` is set"
	if !old.get("immutable").yes() {
		return
	}
	if !n.get("immutable").yes() {
		n.get("immutable").forbidden(detail)
	}
	for _, name := range names {
		if old.get(name).size()+n.get(name).size() > 0 && !objects.Equal(old.get(name).v, n.get(name).v) {
			n.get(name).forbidden(detail)
		}
	}
}

func validSecret(n node) {
	data := n.get("data")
	total := 0
	for _, key := range data.keys() {
		for _, msg := range validation.IsConfigMapKey(key) {
			n.fail(field.Invalid(data.path().Key(key), key, msg))
		}
		total += decodedLen(data.get(key).text())
	}
	if total > maxData {
		n.fail(field.TooLong(data.path(), "", maxData))
	}
	need := func(key string) {
		if !data.get(key).set() {
			n.fail(field.Required(data.path().Key(key), ""))
		}
	}
	switch t := corev1.SecretType(n.get("type").text()); t {
	case corev1.SecretTypeServiceAccountToken:
		if n.get("metadata", "annotations", corev1.ServiceAccountNameKey).text() == "" {
			n.fail(field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson:
		key := corev1.DockerConfigKey
		if t == corev1.SecretTypeDockerConfigJson {
			key = corev1.DockerConfigJsonKey
		}
		need(key)
		if data.get(key).set() {
			content, _ := base64.StdEncoding.DecodeString(data.get(key).text())
			if err := json.Unmarshal(content, &map[string]any{}); err != nil {
				n.fail(field.Invalid(data.path().Key(key), "<secret contents redacted>", err.Error()))
			}
		}
	case corev1.SecretTypeBasicAuth:
		if !data.get(corev1.BasicAuthUsernameKey).set() && !data.get(corev1.BasicAuthPasswordKey).set() {
			need(corev1.BasicAuthUsernameKey)
			need(corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if data.get(corev1.SSHAuthPrivateKey).text() == "" {
			n.fail(field.Required(data.path().Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey)
		need(corev1.TLSPrivateKeyKey)
	}
}

func updatedSecret(old, n node) {
	if a, b := cmp.Or(old.get("type").text(), "Opaque"), cmp.Or(n.get("type").text(), "Opaque"); a != b {
		n.get("type").fail(field.Invalid(n.get("type").path(), b, "field is immutable"))
	}
	unchangeable(old, n, "data")
}

func validService(n node) {
	s := n.get("spec")
	kind := cmp.Or(s.get("type").text(), "ClusterIP")
	s.get("type").oneOf("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
	ports := s.get("ports")
	ip := s.get("clusterIP")
	switch {
	case kind == "ExternalName":
		name := s.get("externalName")
		if ip.text() != "" && ip.text() != "None" {
			ip.forbidden("may not be set for ExternalName services")
		}
		if host := strings.TrimSuffix(name.text(), "."); host != "" {
			name.each(validation.IsDNS1123Subdomain(host))
		} else {
			name.required("")
		}
	case ports.size() == 0 && ip.text() != "None":
		ports.required("")
	}
	if kind == "LoadBalancer" || kind == "NodePort" {
		if ip.text() == "None" {
			ip.fail(field.Invalid(s.get("clusterIPs").path().Index(0), "None", "may not be set to 'None' for "+kind+" services"))
		}
	}
	if text := ip.text(); text != "" && text != "None" {
		if _, err := netip.ParseAddr(text); err != nil {
			ip.invalid("must be empty, 'None', or a valid IP address")
		}
	}
	s.get("selector").selects()
	s.get("sessionAffinity").oneOf("ClientIP", "None")
	s.get("externalTrafficPolicy").oneOf("Cluster", "Local")
	s.get("internalTrafficPolicy").oneOf("Cluster", "Local")
	s.get("ipFamilyPolicy").oneOf("PreferDualStack", "RequireDualStack", "SingleStack")
	type port struct {
		protocol string
		number   int64
	}
	seen := make(map[port]bool)
	for _, p := range ports.items() {
		name := p.get("name")
		if name.text() != "" {
			name.label()
		} else if ports.size() > 1 {
			name.required("")
		}
		number, _ := p.get("port").number()
		if number < 1 || number > 65535 {
			p.get("port").fail(field.Invalid(p.get("port").path(), number, validation.InclusiveRangeError(1, 65535)))
		}
		p.get("protocol").oneOf("SCTP", "TCP", "UDP")
		p.get("targetPort").portOrName()
		key := port{cmp.Or(p.get("protocol").text(), "TCP"), number}
		if seen[key] {
			n.fail(field.Duplicate(p.path(), p.v))
		}
		seen[key] = true
	}
	ports.unique("name")
}

// portOrName judges the port of a container, by number or name.
func (n node) portOrName() {
	switch v := n.v.(type) {
	case int64:
		n.between(1, 65535)
	case string:
		n.each(validation.IsValidPortName(v))
	}
}

func updatedService(old, n node) {
	a, b := old.get("spec"), n.get("spec")
	if a.get("type").text() == "ExternalName" || b.get("type").text() == "ExternalName" {
		return
	}
	// Only what was allocated or given stays; an API server keeps it where an
	// update leaves it out.
	if before := a.get("clusterIP").text(); before != "" && b.get("clusterIP").text() != before {
		n.fail(field.Invalid(b.get("clusterIPs").path().Index(0), b.get("clusterIP").shown(), "may not change once set"))
	}
}

func validNode(n node) {
	taints := n.get("spec", "taints")
	seen := make(map[[2]string]bool)
	for _, t := range taints.items() {
		t.get("key").each(validation.IsQualifiedName(t.get("key").text()))
		if v := t.get("value"); v.text() != "" {
			v.each(validation.IsValidLabelValue(v.text()))
		}
		if t.get("effect").text() == "" {
			t.get("effect").required("")
		}
		t.get("effect").oneOf("NoSchedule", "PreferNoSchedule", "NoExecute")
		key := [2]string{t.get("key").text(), t.get("effect").text()}
		if seen[key] {
			t.fail(field.Duplicate(t.path(), t.v))
		}
		seen[key] = true
	}
}

func updatedNode(old, n node) {
	for _, name := range []string{"podCIDR", "providerID"} {
		before := old.get("spec", name).text()
		if f := n.get("spec", name); before != "" && f.text() != before {
			f.forbidden("node updates may not change " + name + " except from \"\" to valid")
		}
	}
}

func validClaim(n node) {
	s := n.get("spec")
	if s.get("accessModes").size() == 0 {
		s.get("accessModes").required("at least 1 access mode is required")
	}
	for _, m := range s.get("accessModes").items() {
		m.oneOf("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
	}
	if !s.get("resources", "requests", "storage").set() {
		p := s.get("resources").path()
		s.fail(field.Required(p.Key("storage"), ""))
	}
}
