package runlevel

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const proxied = `
apiVersion: apps/v1
kind: KIND
metadata: {name: d, namespace: ns, annotations: {config.openshift.io/inject-proxy: "NAMES"}}
spec:
  template:
    spec:
      initContainers:
      - {name: one}
      containers:
      - {name: one, env: [{name: A, value: a}, {name: NO_PROXY, valueFrom: {fieldRef: {fieldPath: x}}}]}
      - {name: two}
      - {name: three}`

func TestInjectProxy(t *testing.T) {
	const proxy = "{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, status: {httpProxy: http, noProxy: none}}"
	vars := "HTTP_PROXY=http HTTPS_PROXY= NO_PROXY=none"
	for _, c := range []struct {
		name, kind, names, proxy string
		want                     map[string]string
		failure                  string
	}{
		{"deployment", "Deployment", "one,two", proxy, map[string]string{"initContainers one": vars, "containers one": "A=a " + vars, "containers two": vars}, ""},
		{"daemonset", "DaemonSet", "two", proxy, map[string]string{"containers two": vars}, ""},
		{"names are not trimmed", "Deployment", "one, two", proxy, nil, `requested injection for non-existent container: " two"`},
		{"unknown container", "Deployment", "one,four", proxy, nil, `requested injection for non-existent container: "four"`},
		{"unknown container, no proxy", "Deployment", "four", strings.Replace(proxy, "httpProxy: http, noProxy: none", "", 1), map[string]string{}, ""},
		{"no Proxy object", "Deployment", "four", "", map[string]string{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var objs []*unstructured.Unstructured
			if c.proxy != "" {
				objs = append(objs, object(t, c.proxy))
			}
			api := newFake(objs...)
			text := strings.NewReplacer("KIND", c.kind, "NAMES", c.names).Replace(proxied)
			err := once(t, api, Options{}, text)
			if c.failure != "" {
				if causeOf(err) != c.failure || len(api.writes()) > 0 {
					t.Fatalf("error %v, calls %v", causeOf(err), api.writes())
				}
				return
			}
			if err != nil {
				t.Fatal(causeOf(err))
			}
			got := envOf(t, api.get(c.kind, "ns/d"))
			if len(c.want) == 0 { // as in the manifest
				c.want = map[string]string{"containers one": "A=a NO_PROXY=?"}
			}
			if _, ok := c.want["containers one"]; !ok {
				c.want["containers one"] = "A=a NO_PROXY=?"
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// envOf lists the variables of all containers that have any.
func envOf(t *testing.T, obj *unstructured.Unstructured) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, field := range []string{"initContainers", "containers"} {
		containers, _, err := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", field)
		checktest.OK(t, err)
		for _, c := range containers {
			c := c.(map[string]any)
			env, _, _ := unstructured.NestedSlice(c, "env")
			var words []string
			for _, e := range env {
				e := e.(map[string]any)
				value, _ := e["value"].(string)
				if e["valueFrom"] != nil {
					value += "?"
				}
				words = append(words, e["name"].(string)+"="+value)
			}
			if len(words) > 0 {
				out[field+" "+c["name"].(string)] = strings.Join(words, " ")
			}
		}
	}
	return out
}

func TestInjectInternalLoadBalancer(t *testing.T) {
	const own = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: openshift-cluster-version}
spec: {template: {spec: {containers: [{name: cluster-version-operator, env: [{name: KUBERNETES_SERVICE_HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}, {name: other}]}}}`
	for _, c := range []struct{ name, deployment, uri, want string }{
		{"with port", "cluster-version-operator", "https://api-int.example.com:6443", "KUBERNETES_SERVICE_HOST=api-int.example.com KUBERNETES_SERVICE_PORT=6443"},
		{"default port", "cluster-version-operator", "https://api-int.example.com", "KUBERNETES_SERVICE_HOST=api-int.example.com KUBERNETES_SERVICE_PORT=443"},
		{"IPv6", "cluster-version-operator", "https://[fd00::1]:6443", "KUBERNETES_SERVICE_HOST=fd00::1 KUBERNETES_SERVICE_PORT=6443"},
		{"not known", "cluster-version-operator", "", "KUBERNETES_SERVICE_HOST=?"},
		{"another deployment", "else", "https://api-int.example.com", "KUBERNETES_SERVICE_HOST=?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			infra := object(t, "{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, status: {apiServerInternalURI: '"+c.uri+"'}}")
			api := newFake(infra)
			if err := once(t, api, Options{}, strings.Replace(own, "NAME", c.deployment, 1)); err != nil {
				t.Fatal(causeOf(err))
			}
			got := envOf(t, api.get("Deployment", "openshift-cluster-version/"+c.deployment))
			if diff := cmp.Diff(map[string]string{"containers cluster-version-operator": c.want}, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
	api := newFake()
	if err := once(t, api, Options{}, strings.Replace(own, "NAME", "cluster-version-operator", 1)); err != nil {
		t.Fatalf("without Infrastructure: %v", causeOf(err))
	}
}

func TestInjectTLS(t *testing.T) {
	const cm = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: ns, annotations: {config.openshift.io/inject-tls: "VALUE"}}
data:
  operator.yaml: |
    # keep me
    apiVersion: operator.openshift.io/v1alpha1
    kind: GenericOperatorConfig
    leaderElection: {disable: true}
  controller.yaml: |
    kind: GenericControllerConfig
    apiVersion: config.openshift.io/v1
    servingInfo:
      bindAddress: 0.0.0.0:8443
      minTLSVersion: VersionTLS10
      cipherSuites: [OLD]
  other.yaml: "kind: GenericControllerConfig\napiVersion: v1\n"
  text: "a: b: c"`
	const server = "{apiVersion: config.openshift.io/v1, kind: APIServer, metadata: {name: cluster}, spec: {tlsSecurityProfile: {PROFILE}}}"
	type serving struct {
		Min     string
		Ciphers int
		First   string
	}
	for _, c := range []struct {
		name, value, profile string
		operator, controller serving
	}{
		{"modern", "true", "type: Modern", serving{"VersionTLS13", 3, "TLS_AES_128_GCM_SHA256"}, serving{"VersionTLS13", 3, "TLS_AES_128_GCM_SHA256"}},
		{"intermediate", "true", "type: Intermediate", serving{"VersionTLS12", 9, "TLS_AES_128_GCM_SHA256"}, serving{"VersionTLS12", 9, "TLS_AES_128_GCM_SHA256"}},
		{"names of OpenSSL, unknown ones dropped", "true", "type: Custom, custom: {minTLSVersion: VersionTLS11, ciphers: [ECDHE-RSA-AES128-GCM-SHA256, NONSENSE]}", serving{"VersionTLS11", 1, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, serving{"VersionTLS11", 1, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}},
		{"no profile", "true", "", serving{"VersionTLS12", 9, "TLS_AES_128_GCM_SHA256"}, serving{"VersionTLS12", 9, "TLS_AES_128_GCM_SHA256"}},
		{"cleared", "true", "none", serving{}, serving{}},
		{"not asked for", "True", "type: Modern", serving{}, serving{"VersionTLS10", 1, "OLD"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var objs []*unstructured.Unstructured
			if c.profile != "none" {
				text := strings.Replace(server, "PROFILE", c.profile, 1)
				if c.profile == "" {
					text = strings.Replace(server, "{tlsSecurityProfile: {PROFILE}}", "{}", 1)
				}
				objs = append(objs, object(t, text))
			}
			api := newFake(objs...)
			if err := once(t, api, Options{}, strings.Replace(cm, "VALUE", c.value, 1)); err != nil {
				t.Fatal(causeOf(err))
			}
			data, _, err := unstructured.NestedStringMap(api.get("ConfigMap", "ns/c").Object, "data")
			checktest.OK(t, err)
			get := func(key string) (s serving) {
				var config struct {
					ServingInfo struct {
						BindAddress, MinTLSVersion string
						CipherSuites               []string
					}
				}
				checktest.OK(t, yaml.Unmarshal([]byte(data[key]), &config))
				s.Min, s.Ciphers = config.ServingInfo.MinTLSVersion, len(config.ServingInfo.CipherSuites)
				if s.Ciphers > 0 {
					s.First = config.ServingInfo.CipherSuites[0]
				}
				if key == "controller.yaml" && config.ServingInfo.BindAddress == "" {
					t.Error("bindAddress is lost")
				}
				return s
			}
			checktest.Same(t, c.operator, get("operator.yaml"))
			checktest.Same(t, c.controller, get("controller.yaml"))
			if !strings.HasPrefix(data["operator.yaml"], "# keep me\n") {
				t.Errorf("comment is lost:\n%s", data["operator.yaml"])
			}
			if data["other.yaml"] != "kind: GenericControllerConfig\napiVersion: v1\n" || data["text"] != "a: b: c" {
				t.Errorf("changed: %q, %q", data["other.yaml"], data["text"])
			}
		})
	}
}

// Early in an installation not even the kinds of configurations exist.
func TestInjectWithoutKinds(t *testing.T) {
	api := newFake()
	api.before = func(_ context.Context, verb, kind, _ string) error {
		if verb == "Get" {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}}
		}
		return nil
	}
	text := strings.NewReplacer("KIND", "Deployment", "NAMES", "one").Replace(proxied)
	if err := once(t, api, Options{}, text); err != nil {
		t.Fatal(causeOf(err))
	}
}

// Not being able to read the configuration is an error, not "none".
func TestInjectReadsFail(t *testing.T) {
	for kind, text := range map[string]string{
		"Proxy":     strings.NewReplacer("KIND", "Deployment", "NAMES", "one").Replace(proxied),
		"APIServer": `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {config.openshift.io/inject-tls: "true"}}, data: {a: b}}`,
	} {
		api := newFake()
		api.before = func(_ context.Context, verb, k, _ string) error {
			if k == kind {
				return errors.New("refused")
			}
			return nil
		}
		if err := once(t, api, Options{}, text); causeOf(err) != "refused" || len(api.writes()) > 0 {
			t.Errorf("%s: %v, %v", kind, causeOf(err), api.writes())
		}
	}
}

// What stands behind a configuration in the same text is not lost.
func TestServingTLSKeepsDocuments(t *testing.T) {
	const config = "apiVersion: operator.openshift.io/v1alpha1\nkind: GenericOperatorConfig\n"
	for _, tt := range []struct{ text, want string }{
		{config + "---\na: 1 # one\n---\n" + config, config + "servingInfo:\n  minTLSVersion: VersionTLS12\n---\na: 1 # one\n---\n" + config},
		{"a: 1\n---\n" + config, "a: 1\n---\n" + config},
		{config + "---\n: : :\n\t", config + "---\n: : :\n\t"},
	} {
		got, err := setServingTLS(tt.text, "VersionTLS12", nil)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
}

func FuzzServingTLS(f *testing.F) {
	f.Add("apiVersion: operator.openshift.io/v1alpha1\nkind: GenericOperatorConfig\n")
	f.Add(`{"apiVersion": "config.openshift.io/v1", "kind": "GenericControllerConfig", "servingInfo": null}`)
	f.Add("apiVersion: config.openshift.io/v1\nkind: GenericControllerConfig\nservingInfo: &a\n  x: *a\n")
	f.Add("apiVersion: config.openshift.io/v1\nkind: GenericControllerConfig\n---\n---\n# none\n--- |\n text\n")
	f.Fuzz(func(t *testing.T, text string) {
		once, err := setServingTLS(text, "VersionTLS12", []string{"A", "B"})
		if err != nil {
			return
		}
		again, err := setServingTLS(once, "VersionTLS12", []string{"A", "B"})
		if err != nil || again != once {
			t.Fatalf("not stable: %q, then %q, %v", once, again, err)
		}
		if _, err := setServingTLS(once, "", nil); err != nil {
			t.Fatalf("cannot be cleared: %v", err)
		}
	})
}
