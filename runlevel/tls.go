package runlevel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	configv1 "github.com/openshift/api/config/v1"
	"go.yaml.in/yaml/v3" // its nodes keep the order and the comments of unchanged nodes
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// injectTLS writes the cluster's TLS settings into the serving configuration
// of operators that a ConfigMap holds.
func (a *applier) injectTLS(ctx context.Context, obj *unstructured.Unstructured) error {
	data, found, err := unstructured.NestedStringMap(obj.Object, "data")
	if err != nil || !found {
		return err
	}
	minVersion, ciphers, err := a.tlsSettings(ctx)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, err := setServingTLS(data[key], minVersion, ciphers)
		if err != nil {
			return fmt.Errorf("data[%q]: %w", key, err)
		}
		data[key] = text
	}
	return unstructured.SetNestedStringMap(obj.Object, data, "data")
}

// tlsSettings returns what APIServer cluster asks for; nothing if there is no such
// object. Without a profile OpenShift uses Intermediate.
func (a *applier) tlsSettings(ctx context.Context) (minVersion string, ciphers []string, err error) {
	server, err := configuration[configv1.APIServer](ctx, a)
	if clusterapi.IsMissing(err) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	spec := configv1.TLSProfiles[configv1.TLSProfileIntermediateType]
	if p := server.Spec.TLSSecurityProfile; p != nil {
		if p.Type == configv1.TLSProfileCustomType && p.Custom != nil {
			spec = &p.Custom.TLSProfileSpec
		} else if known := configv1.TLSProfiles[p.Type]; known != nil {
			spec = known
		}
	}
	for _, name := range spec.Ciphers {
		if iana, ok := cipherNames[name]; ok {
			ciphers = append(ciphers, iana)
		}
	}
	return string(spec.MinTLSVersion), ciphers, nil
}

// cipherNames maps names of OpenSSL, which profiles use, to those of IANA,
// which configurations use. What Go's TLS cannot do is left out, as profiles
// ask of their readers.
var cipherNames = map[string]string{
	"TLS_AES_128_GCM_SHA256":        "TLS_AES_128_GCM_SHA256",
	"TLS_AES_256_GCM_SHA384":        "TLS_AES_256_GCM_SHA384",
	"TLS_CHACHA20_POLY1305_SHA256":  "TLS_CHACHA20_POLY1305_SHA256",
	"ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-RSA-AES128-GCM-SHA256":   "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-RSA-AES256-GCM-SHA384":   "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-RSA-CHACHA20-POLY1305":   "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-ECDSA-AES128-SHA256":     "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
	"ECDHE-RSA-AES128-SHA256":       "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
	"ECDHE-ECDSA-AES128-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
	"ECDHE-RSA-AES128-SHA":          "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
	"ECDHE-ECDSA-AES256-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
	"ECDHE-RSA-AES256-SHA":          "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
	"AES128-GCM-SHA256":             "TLS_RSA_WITH_AES_128_GCM_SHA256",
	"AES256-GCM-SHA384":             "TLS_RSA_WITH_AES_256_GCM_SHA384",
	"AES128-SHA256":                 "TLS_RSA_WITH_AES_128_CBC_SHA256",
	"AES128-SHA":                    "TLS_RSA_WITH_AES_128_CBC_SHA",
	"AES256-SHA":                    "TLS_RSA_WITH_AES_256_CBC_SHA",
	"DES-CBC3-SHA":                  "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
}

// setServingTLS sets servingInfo.minTLSVersion and cipherSuites in an
// operator's or controller's configuration, or removes them where they are
// empty. Other texts, and what else is in it, comments too, stay. Of several
// documents the first is the configuration, which is all that is read of them; the
// others stay.
func setServingTLS(text, minVersion string, ciphers []string) (string, error) {
	var docs []*yaml.Node
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var doc yaml.Node
		if err := dec.Decode(&doc); err == io.EOF { // as the decoder documents it
			break
		} else if err != nil {
			return text, nil // a ConfigMap may hold any text
		}
		docs = append(docs, &doc)
	}
	if len(docs) == 0 || len(docs[0].Content) != 1 {
		return text, nil
	}
	root := docs[0].Content[0]
	if !isServingConfig(root) {
		return text, nil
	}
	info := field(root, "servingInfo")
	if info == nil {
		if minVersion == "" && len(ciphers) == 0 {
			return text, nil
		}
		info = &yaml.Node{}
		setField(root, "servingInfo", info)
	}
	if info.Kind != yaml.MappingNode {
		if info.Kind != 0 && info.Tag != "!!null" {
			return "", fmt.Errorf("servingInfo is not a map")
		}
		*info = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	var version, suites *yaml.Node
	if minVersion != "" {
		version = stringNode(minVersion)
	}
	if len(ciphers) > 0 {
		suites = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: root.Style & yaml.FlowStyle}
		for _, c := range ciphers {
			suites.Content = append(suites.Content, stringNode(c))
		}
	}
	setField(info, "minTLSVersion", version)
	setField(info, "cipherSuites", suites)

	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	for _, doc := range docs {
		if err := enc.Encode(doc); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func isServingConfig(root *yaml.Node) bool {
	version, kind := field(root, "apiVersion"), field(root, "kind")
	if version == nil || kind == nil {
		return false
	}
	switch version.Value + " " + kind.Value {
	case "operator.openshift.io/v1alpha1 GenericOperatorConfig",
		"config.openshift.io/v1 GenericControllerConfig":
		return true
	}
	return false
}

func stringNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// field returns the value of a key of a map, nil if absent.
func field(m *yaml.Node, key string) *yaml.Node {
	if m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// setField sets the value of a key of a map; nil removes the key.
func setField(m *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value != key {
			continue
		}
		if value == nil {
			m.Content = slices.Delete(m.Content, i, i+2)
		} else {
			m.Content[i+1] = value
		}
		return
	}
	if value != nil {
		m.Content = append(m.Content, stringNode(key), value)
	}
}
