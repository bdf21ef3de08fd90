// Package redacttest plants credentials for tests that look for them in what a
// package shows.
package redacttest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Secrets generates credentials: no word that is anywhere else.
var Secrets = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9+/_~-]{12,30}[A-Za-z0-9]`)

// Objects returns objects of several kinds with the secret wherever people put
// secrets. number becomes part of the rest, so that objects with different numbers
// differ elsewhere, too.
func Objects(tb testing.TB, secret string, number int) []*unstructured.Unstructured {
	tb.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte("password=" + secret))
	w.Close()
	encode := base64.StdEncoding.EncodeToString
	text := strings.NewReplacer(
		"SECRET64", encode([]byte(secret)),
		"QUERY", url.QueryEscape(secret),
		"ZIPPED", encode(zipped.Bytes()),
		"PEM64", encode([]byte("-----BEGIN RSA PRIVATE KEY-----\n"+secret+"\n-----END RSA PRIVATE KEY-----\n")),
		"SECRET", secret,
		"NUMBER", fmt.Sprint(number),
	).Replace(planted)
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err == nil {
			err = json.Unmarshal(raw, &u.Object)
		}
		checktest.FatalIf(tb, err != nil, "%v: %s", err, doc)
		out = append(out, u)
	}
	return out
}

// Find returns where a text has the secret, in one of its forms; empty if it has
// not.
func Find(text, secret string) string {
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
		if at := strings.Index(text, form); at >= 0 {
			return text[max(at-200, 0):min(at+len(form)+20, len(text))]
		}
	}
	return ""
}

const planted = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-planted, labels: {number: nNUMBER}}
spec:
  kernelArguments: [quiet, nNUMBER]
  config:
    ignition: {version: 3.4.0}
    passwd: {users: [{name: core, passwordHash: SECRET}]}
    storage:
      files:
      - {path: /etc/a, contents: {source: "data:,SECRET"}}
      - {path: /etc/b, contents: {source: "data:text/plain;charset=utf-8;base64,SECRET64", compression: ""}}
      - {path: /etc/c, contents: {source: "data:;base64,ZIPPED", compression: gzip}, append: [{source: "data:,SECRET"}]}
    systemd:
      units:
      - {name: a.service, contents: "[Service]\nEnvironment=API_TOKEN=SECRET\nExecStart=/bin/a --password SECRET\n"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: planted, namespace: ns, annotations: {a.io/api-key: SECRET}}
spec:
  replicas: NUMBER
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: a
        image: example.com/token-minter:v1
        command: [sh, -c, "exec a --api-key SECRET --level nNUMBER"]
        args: [--password, SECRET, --token=SECRET, "--db=postgres://me:SECRET@db/x", --level=nNUMBER]
        env:
        - {name: LEVEL, value: nNUMBER}
        - {name: DB_PASSPHRASE, value: SECRET}
        - {name: DBPWD, value: SECRET}
        - {name: BEARER, value: SECRET}
        - {name: SSHKEY, value: SECRET}
        - {name: REGISTRY_AUTH, value: SECRET}
        - {name: DATABASE, value: "postgres://me:SECRET@db/x"}
        - {name: HOOK, value: "https://hooks.example.com/a?sig=QUERY"}
        - {name: PROXY, value: "me:SECRET@proxy:3128"}
        livenessProbe:
          httpGet:
            port: 80
            httpHeaders:
            - {name: Authorization, value: Bearer SECRET}
            - {name: X-Custom, value: SECRET}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: planted, namespace: ns}
data:
  level: nNUMBER
  tls.key: SECRET
  .dockercfg: SECRET
  id_rsa: SECRET
  config.json: '{"auths":{"quay.io":{"auth":"SECRET64","email":"SECRET"}}}'
  nested.yaml: "pull: '{\"auths\": {\"a\": {\"auth\": \"SECRET\"}}}'"
  settings.yaml: "level: nNUMBER\npassphrase: SECRET\nclient_secret: \"SECRET\"\n"
  block.yaml: "a: 1\npassword: |\n  SECRET\n"
  settings.ini: "level=nNUMBER\ndb.password = SECRET\n"
  settings.json: '{"level":NUMBER,"apiKey":"SECRET"}'
  kube.conf: "apiVersion: v1\nkind: Config\ncurrent-context: a\nusers:\n- name: a\n  user:\n    client-key-data: SECRET\n"
  key.b64: PEM64
binaryData:
  a.gz: ZIPPED
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: planted, namespace: ns}
spec: {host: nNUMBER.example.com, to: {kind: Service, name: a}, tls: {termination: edge, key: SECRET}}
---
apiVersion: v1
kind: Secret
metadata: {name: planted, namespace: ns, labels: {number: nNUMBER}}
type: Opaque
data: {a: SECRET64}
---
apiVersion: config.openshift.io/v1
kind: OAuth
metadata:
  name: cluster
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{\"spec\":\"SECRET\"}"}
spec:
  number: NUMBER
  urls: ["https://me:SECRET@a/b", "https://a/b?c=QUERY", "https://a/b#QUERY", "https://me:SECRET@a b/", "me:SECRET@a:80"]
  broken: "https://me:%zzSECRET@a/"
  token: {clientSecret: SECRET, nested: [SECRET]}
  text: "Authorization: Bearer SECRETSECRET"
`
