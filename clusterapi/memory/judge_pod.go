package memory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// template judges the pod template of a workload.
func (n node) template() {
	n.templateMetadata()
	n.get("spec").pod()
}

// pod judges a pod's spec.
func (n node) pod() {
	n.get("restartPolicy").oneOf("Always", "OnFailure", "Never")
	n.get("dnsPolicy").oneOf("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
	n.get("preemptionPolicy").oneOf("PreemptLowerPriority", "Never")
	n.notNegative("terminationGracePeriodSeconds")
	n.get("activeDeadlineSeconds").between(1, math.MaxInt32)
	for _, name := range []string{"serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"} {
		if f := n.get(name); f.text() != "" {
			f.subdomain()
		}
	}
	for _, name := range []string{"hostname", "subdomain"} {
		if f := n.get(name); f.text() != "" {
			f.label()
		}
	}
	n.get("nodeSelector").selects()
	for _, t := range n.get("tolerations").items() {
		t.toleration()
	}

	volumes := n.get("volumes")
	known := make(map[string]bool)
	for _, v := range volumes.items() {
		name := v.get("name")
		if name.filled() {
			name.label()
		}
		known[name.text()] = true
		if v.size() > 2 {
			v.severalSources()
		}
	}
	volumes.unique("name")

	containers := n.get("containers")
	if containers.size() == 0 {
		containers.required("")
	}
	names := make(map[string]bool)
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, c := range n.get(list).items() {
			c.container(known, list)
			name := c.get("name")
			if s := name.text(); s != "" && names[s] {
				name.fail(field.Duplicate(name.path(), s))
			}
			names[name.text()] = true
		}
	}
}

// severalSources refuses the sources of a volume but for the first.
func (n node) severalSources() {
	sources := slices.DeleteFunc(n.keys(), func(name string) bool { return name == "name" })
	for _, name := range sources[1:] {
		n.get(name).forbidden("may not specify more than 1 volume type")
	}
}

func (n node) toleration() {
	key := n.get("key")
	if key.text() != "" {
		key.each(validation.IsQualifiedName(key.text()))
	} else if n.get("operator").text() != "Exists" {
		n.get("operator").fail(field.Invalid(n.get("operator").path(), cmp.Or(n.get("operator").text(), "Equal"),
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	n.get("operator").oneOf("Equal", "Exists", "Lt", "Gt")
	if n.get("operator").text() == "Exists" && n.get("value").text() != "" {
		n.get("operator").invalid("value must be empty when `operator` is 'Exists'")
	}
	n.get("effect").oneOf("NoSchedule", "PreferNoSchedule", "NoExecute")
	if n.get("tolerationSeconds").set() && n.get("effect").text() != "NoExecute" {
		n.get("effect").invalid("effect must be 'NoExecute' when `tolerationSeconds` is set")
	}
}

func (n node) container(volumes map[string]bool, list string) {
	if name := n.get("name"); name.filled() {
		name.label()
	}
	n.get("image").filled()
	n.get("imagePullPolicy").oneOf("Always", "IfNotPresent", "Never")
	n.get("terminationMessagePolicy").oneOf("FallbackToLogsOnError", "File")
	if list == "initContainers" {
		n.get("restartPolicy").oneOf("Always", "Never", "OnFailure")
	}
	names := make(map[string]bool)
	for _, p := range n.get("ports").items() {
		if name := p.get("name"); name.text() != "" {
			name.each(validation.IsValidPortName(name.text()))
			if names[name.text()] {
				name.fail(field.Duplicate(name.path(), name.text()))
			}
			names[name.text()] = true
		}
		if number, _ := p.get("containerPort").number(); number == 0 {
			p.get("containerPort").required("")
		}
		p.get("containerPort").between(1, 65535)
		p.get("hostPort").between(0, 65535)
		p.get("protocol").oneOf("SCTP", "TCP", "UDP")
	}
	for _, e := range n.get("env").items() {
		name := e.get("name")
		if name.filled() {
			name.each(validation.IsRelaxedEnvVarName(name.text()))
		}
		if from := e.get("valueFrom"); from.set() {
			if e.get("value").text() != "" {
				from.fail(field.Invalid(from.path(), "", "may not be specified when `value` is not empty"))
			}
			if from.size() == 0 {
				from.fail(field.Invalid(from.path(), "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
			} else if from.size() > 1 {
				from.fail(field.Invalid(from.path(), "", "may not have more than one field specified at a time"))
			}
		}
	}
	paths := make(map[string]bool)
	for _, m := range n.get("volumeMounts").items() {
		name, path := m.get("name"), m.get("mountPath")
		if name.filled() && !volumes[name.text()] {
			name.fail(field.NotFound(name.path(), name.text()))
		}
		if path.filled() && paths[path.text()] {
			path.invalid("must be unique")
		}
		paths[path.text()] = true
		m.get("mountPropagation").oneOf("Bidirectional", "HostToContainer", "None")
	}
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if p := n.get(name); p.set() {
			p.probe(name != "readinessProbe")
		}
	}
	for _, name := range []string{"postStart", "preStop"} {
		if h := n.get("lifecycle", name); h.set() {
			h.handler()
		}
	}
	n.resources()
}

func (n node) probe(once bool) {
	n.handler()
	n.notNegative("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
	if i, ok := n.get("successThreshold").number(); ok && once && i > 1 {
		n.get("successThreshold").invalid("must be 1")
	}
}

// handler judges what a probe or a hook does.
func (n node) handler() {
	count := 0
	for _, name := range []string{"exec", "grpc", "httpGet", "sleep", "tcpSocket"} {
		h := n.get(name)
		if !h.set() {
			continue
		}
		if count++; count > 1 {
			h.forbidden("may not specify more than 1 handler type")
			continue
		}
		switch name {
		case "exec":
			if h.get("command").size() == 0 {
				h.get("command").required("")
			}
		case "httpGet", "tcpSocket":
			if port := h.get("port"); port.set() {
				port.portOrName()
			} else {
				port.fail(field.Invalid(port.path(), 0, validation.InclusiveRangeError(1, 65535)))
			}
			h.get("scheme").oneOf("HTTP", "HTTPS")
		}
	}
	if count == 0 {
		n.required("must specify a handler type")
	}
}

// resources judges requests and limits.
func (n node) resources() {
	requests, limits := n.get("resources", "requests"), n.get("resources", "limits")
	amount := func(n node) (resource.Quantity, bool) {
		q, err := resource.ParseQuantity(fmt.Sprint(n.v))
		return q, err == nil && n.set()
	}
	for _, l := range []node{limits, requests} {
		for _, name := range l.keys() {
			q, ok := amount(l.get(name))
			if ok && q.Sign() < 0 {
				n.fail(field.Invalid(l.path().Key(name), q.String(), "must be greater than or equal to 0"))
			}
			if !strings.Contains(name, "/") && !standardResource(name) {
				n.fail(field.Invalid(l.path().Key(name), name, "must be a standard resource type or fully qualified"))
				n.fail(field.Invalid(l.path().Key(name), name, "must be a standard resource for containers"))
			}
		}
	}
	for _, name := range requests.keys() {
		request, ok := amount(requests.get(name))
		limit, limited := amount(limits.get(name))
		if ok && limited && request.Cmp(limit) > 0 {
			n.fail(field.Invalid(requests.path(), request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
}

func standardResource(name string) bool {
	switch name {
	case "cpu", "memory", "ephemeral-storage":
		return true
	}
	return strings.HasPrefix(name, "hugepages-")
}

// mutablePod are the fields of a pod's spec that an update may change.
var mutablePod = map[string]bool{
	"activeDeadlineSeconds": true, "terminationGracePeriodSeconds": true, "tolerations": true, "schedulingGates": true,
}

// updatedPod refuses changes of a pod but of images and a few fields.
func updatedPod(old, n node) {
	a, b := old.get("spec"), n.get("spec")
	changed := false
	for _, name := range append(a.keys(), b.keys()...) {
		av, bv := a.get(name).v, b.get(name).v
		switch {
		case mutablePod[name] || objects.Equal(av, bv):
		case name == "containers" || name == "initContainers":
			changed = changed || !objects.Equal(withoutImages(av), withoutImages(bv))
		case name == "nodeName" && a.get(name).text() == "":
			// The scheduler's binding is a subresource on a server; here it is an
			// update.
		default:
			changed = true
		}
	}
	if changed {
		b.forbidden("pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")
	}
}

func withoutImages(v any) any {
	return objects.Rewrite(v, nil, func(e any) any {
		return objects.Rewrite(e, func(name string, v any) (any, bool) { return v, name != "image" }, nil)
	})
}
