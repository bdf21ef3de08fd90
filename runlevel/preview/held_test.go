package preview_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/redact/redacttest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// settings is a ConfigMap of a file.
func settings(file, name string) string {
	return "# " + file + "\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: ns, annotations: {note: x}}}"
}

// other is a Deployment with a selector that no update can change.
func other(d string) string {
	return strings.Replace(d, "matchLabels: {app: d}", "matchLabels: {app: e}", 1)
}

// What stands behind a refused change is named with it, and a pass of the update leaves
// just that out.
func TestHeldBy(t *testing.T) {
	second := strings.ReplaceAll(fmtWorkload, "app: d", "app: e")
	second = strings.Replace(second, "name: d,", "name: e,", 1)
	target := strings.Join([]string{
		settings("0000_10_a_1.yaml", "before"), "# 0000_10_a_2.yaml" + fmtWorkload, settings("0000_10_a_3.yaml", "after"),
		settings("0000_10_b_1.yaml", "aside"), settings("0000_20_c_1.yaml", "behind"), "# 0000_20_c_2.yaml" + second,
		settings("0000_20_d_1.yaml", "beside"), settings("0000_30_e_1.yaml", "last"),
	}, "\n---\n")
	c := cluster(t, other(fmtWorkload)+"\n---\n"+strings.Replace(second, "matchLabels: {app: e}", "matchLabels: {app: f}", 1))
	p := run(t, c, target)
	got := make(map[string]string)
	for _, change := range p.Changes {
		var by []string
		for _, o := range change.HeldBy {
			by = append(by, o.String())
		}
		got[change.Object.Name] = strings.Join(by, ", ")
	}
	const d, both = "Deployment ns/d", "Deployment ns/d, Deployment ns/e"
	want := map[string]string{
		"before": "", "d": "", "after": d, "aside": "", "behind": d, "e": d, "beside": d, "last": both,
	}
	checktest.Same(t, want, got)
	var text strings.Builder
	checktest.OK(t, p.Text(&text, preview.TextOptions{}))
	checktest.Has(t, text.String(), "\n2 refused, 4 behind them\n")

	_, err := runlevel.Run(t.Context(), manifest.NewTasks(manifestsOf(t, target)), runlevel.Options{
		API: c, SkipChecks: true, Backoff: &runlevel.Backoff{Steps: 1},
	})
	if err == nil {
		t.Error("the update is not refused")
	}
	for _, change := range p.Changes {
		if change.Action != preview.Create {
			continue
		}
		_, err := c.Get(t.Context(), change.Object.GroupVersionKind, change.Object.NamespacedName)
		checktest.Equal(t, len(change.HeldBy) > 0, apierrors.IsNotFound(err), "%s: %v", change.Object, err)
	}
}

// A refused Deployment of the first runlevels of a real update holds up most of the rest.
func TestRealHeldBy(t *testing.T) {
	t.Parallel()
	old, target := loadReal(t, "payload-4.17.30"), loadReal(t, "payload-4.18.15")
	c := apply(t, old)
	const name = "Deployment openshift-kube-apiserver-operator/kube-apiserver-operator"
	for _, m := range target.Manifests {
		at := preview.Object{GroupVersionKind: m.GVK(), NamespacedName: clusterapi.KeyOf(m.Object())}
		if at.String() != name {
			continue
		}
		live := checktest.Get(c.Get(t.Context(), at.GroupVersionKind, at.NamespacedName))(t)
		checktest.OK(t, c.Delete(t.Context(), at.GroupVersionKind, at.NamespacedName, clusterapi.DeleteOptions{}))
		live = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": at.Name, "namespace": at.Namespace},
			"spec":     live.Object["spec"],
		}}
		_ = unstructured.SetNestedStringMap(live.Object, map[string]string{"app": "x"}, "spec", "selector", "matchLabels")
		_ = unstructured.SetNestedStringMap(live.Object, map[string]string{"app": "x"}, "spec", "template", "metadata", "labels")
		checktest.OK(t, c.Load(live))
	}
	p := checktest.Get(preview.Run(t.Context(), target.Tasks(), preview.Options{Reader: c, Payload: target, Running: old, Owner: owner}))(t)
	refused := changeOf(t, p, name)
	checktest.Equal(t, preview.Fail, refused.Action, "%s", refused.Reason)
	held, announced := 0, 0
	for _, change := range p.Changes {
		if len(change.HeldBy) > 0 {
			held++
			checktest.Same(t, []preview.Object{refused.Object}, change.HeldBy)
		}
		switch change.Action {
		case preview.Create, preview.Update:
			announced++
		}
		if len(change.HeldBy) > 0 && change.Tasks[0].Index <= refused.Tasks[0].Index {
			t.Errorf("%s comes first", change.Object)
		}
	}
	if held < announced/2 || held >= announced {
		t.Errorf("%d of %d are held", held, announced)
	}
}

// Capabilities that the release moves objects into which the cluster has are named, unless
// the cluster has them.
func TestImplicit(t *testing.T) {
	in := func(capability string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: ns, annotations: {capability.openshift.io/name: '" + capability + "'}}}"
	}
	from, to := payload(t, "4.18.1", settings("0000_10_a_x.yaml", "x")), payload(t, "4.19.0", in("Console"))
	filter := manifest.Filter{Capabilities: &manifest.Capabilities{
		Known: sets.New("Console", "Insights"), Enabled: sets.New("Insights"), Implicit: sets.New("Insights"),
	}}
	const cv = "{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {clusterID: x}, status: {capabilities: {enabledCapabilities: [ENABLED]}}}"
	for _, tt := range []struct {
		name, cluster string
		filter        manifest.Filter
		want          []string
	}{
		{"new", strings.Replace(cv, "ENABLED", "Insights", 1), filter, []string{"Console"}},
		{"enabled already", strings.Replace(cv, "ENABLED", "Insights, Console", 1), filter, nil},
		{"no ClusterVersion", "", filter, nil},
		{"no capabilities", strings.Replace(cv, "ENABLED", "Insights", 1), manifest.Filter{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := checktest.Get(preview.Run(t.Context(), to.Tasks(), preview.Options{
				Reader: cluster(t, tt.cluster), Running: from, Payload: to, Filter: tt.filter,
			}))(t)
			checktest.Same(t, tt.want, p.Implicit)
			var text strings.Builder
			checktest.OK(t, p.Text(&text, preview.TextOptions{}))
			const named = "Capabilities that the update enables implicitly\n    Console\n"
			checktest.Equal(t, tt.want != nil, strings.Contains(text.String(), named), "%s", &text)
		})
	}
}

// No text of a release, a cluster or a server breaks a line of the output.
func TestTextQuotes(t *testing.T) {
	const evil = "x\x1b[2J\ny"
	object := preview.Object{}
	object.Kind, object.Name = "ConfigMap", evil
	exists := true
	p := &preview.Preview{
		Release: preview.Release{Version: evil}, Running: &preview.Release{Version: evil},
		Changes: []preview.Change{
			{Tasks: []preview.Task{{File: evil, Level: evil}}, Object: object, Action: preview.Fail, Reason: evil, Dropped: []string{evil},
				Stale: []preview.StaleField{{Path: evil, Value: evil}}, Rolls: &preview.Rolls{Pods: []preview.Pod{{Name: evil, Node: evil}}},
				Dependents: []preview.Dependents{{Kind: evil, Count: 1}}, Server: &preview.Answer{Error: evil},
				Fields: []clusterapi.FieldChange{{Path: "a", Old: evil, New: "b"}},
				Drift:  []runlevel.DriftedField{{Path: "a", Owners: []runlevel.FieldOwner{{Manager: evil}}}}},
			{Tasks: []preview.Task{{File: evil}}, Object: object, Action: preview.Update, Rolls: &preview.Rolls{Unknown: evil}},
			{Tasks: []preview.Task{{File: evil}}, Object: object, Action: "Keep", Reason: evil},
		},
		Access:      []preview.AccessChange{{Object: object, Subjects: []string{evil}, Gained: []string{evil}, Lost: []string{evil}}},
		Implicit:    []string{evil},
		Left:        []preview.Left{{Object: object, Exists: &exists}},
		RemovedAPIs: []preview.RemovedAPI{{Resource: evil}},
		Images:      []manifest.ImageChange{{Name: evil, New: "a"}},
		Unknowns:    []string{evil}, Assumed: []string{evil},
	}
	var text strings.Builder
	checktest.OK(t, p.Text(&text, preview.TextOptions{Unchanged: true}))
	for line := range strings.Lines(text.String()) {
		if strings.ContainsRune(line, '\x1b') || strings.HasPrefix(line, "y") {
			t.Errorf("%q", line)
		}
	}
}

// Credentials that stand in a cluster, in the running release or in the target come
// out of none of the forms of a preview: its changes, its drifts and what is
// stale.
func TestPlantedCredentials(t *testing.T) {
	secrets := []string{"Cl0uster/Secret+1", "Runn1ng/Secret+2", "Targ3t/Secret+3"}
	release := func(version, secret string, number int) string {
		text := ""
		for _, u := range redacttest.Objects(t, secret, number) {
			raw := checktest.Get(yaml.Marshal(u.Object))(t)
			text += "---\n" + string(raw)
		}
		return text
	}
	c := memory.New(memory.Options{Lenient: true})
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ns"}}}
	checktest.OK(t, errors.Join(c.Load(ns), c.Load(redacttest.Objects(t, secrets[0], 1)...)))
	for _, target := range []string{secrets[2], secrets[1]} { // the second: all that differs is drift
		running, to := payload(t, "4.18.1", release("4.18.1", secrets[1], 1)), payload(t, "4.19.0", release("4.19.0", target, 2))
		p := checktest.Get(preview.Run(t.Context(), to.Tasks(), preview.Options{Reader: c, Running: running, Payload: to}))(t)
		var text, diff strings.Builder
		checktest.OK(t, errors.Join(p.Text(&text, preview.TextOptions{Unchanged: true}), p.Diff(&diff, preview.TextOptions{})))
		raw := checktest.Get(json.Marshal(p))(t)
		drifts := 0
		for _, c := range p.Changes {
			drifts += len(c.Drift)
		}
		if changed := strings.Count(text.String(), "(redacted-"); changed < 20 || target == secrets[1] && drifts == 0 {
			t.Errorf("%d hidden values, %d drifts:\n%s", changed, drifts, text.String())
		}
		for name, s := range map[string]string{"text": text.String(), "diff": diff.String(), "JSON": string(raw)} {
			for _, secret := range secrets {
				if at := redacttest.Find(s, secret); at != "" {
					t.Errorf("%s: %s", name, at)
				}
			}
		}
	}
}
