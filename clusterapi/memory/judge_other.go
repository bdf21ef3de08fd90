package memory

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

func validBudget(n node) {
	s := n.get("spec")
	least, most := s.get("minAvailable"), s.get("maxUnavailable")
	if least.set() && most.set() {
		s.invalid("minAvailable and maxUnavailable cannot be both set")
	}
	least.intOrPercent()
	most.intOrPercent()
	s.get("selector").selector()
	s.get("unhealthyPodEvictionPolicy").oneOf("AlwaysAllow", "IfHealthyBudget")
	n.get("status").notNegative("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
}

func validStorageClass(n node) {
	if p := n.get("provisioner"); p.filled() {
		p.each(validation.IsQualifiedName(strings.ToLower(p.text())))
	}
	n.get("reclaimPolicy").oneOf("Delete", "Retain")
	n.get("volumeBindingMode").oneOf("Immediate", "WaitForFirstConsumer")
}

func updatedStorageClass(old, n node) {
	immutable(old, n, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
}

func validNetworkPolicy(n node) {
	s := n.get("spec")
	s.get("podSelector").selector()
	for _, t := range s.get("policyTypes").items() {
		t.oneOf("Egress", "Ingress")
	}
}

func validFlowSchema(n node) {
	s := n.get("spec")
	if i, ok := s.get("matchingPrecedence").number(); ok && (i < 1 || i > 10000) {
		s.get("matchingPrecedence").invalid("must be a number between 1 and 10000 (both inclusive)")
	}
	if name := s.get("priorityLevelConfiguration", "name"); name.text() == "" {
		name.required("must reference a priority level")
	}
}

// highestPriority is what users may give.
const highestPriority = 1000000000

func validPriorityClass(n node) {
	name := n.get("metadata", "name")
	value, _ := n.get("value").number()
	switch {
	case strings.HasPrefix(name.text(), "system-"):
		if name.text() != "system-node-critical" && name.text() != "system-cluster-critical" {
			name.forbidden(fmt.Sprintf("priority class names with 'system-' prefix are reserved for system use only. error: %s is not a known system priority class", name.text()))
		}
	case value > highestPriority:
		n.get("value").forbidden(fmt.Sprintf("maximum allowed value of a user defined priority is %d", highestPriority))
	}
	n.get("preemptionPolicy").oneOf("PreemptLowerPriority", "Never")
}

func updatedPriorityClass(old, n node) {
	if !objects.Equal(old.get("value").v, n.get("value").v) {
		n.get("value").forbidden("may not be changed in an update.")
	}
	const usual = "PreemptLowerPriority"
	before, after := old.get("preemptionPolicy"), n.get("preemptionPolicy")
	if cmp.Or(before.text(), usual) != cmp.Or(after.text(), usual) {
		after.invalid("field is immutable")
	}
}

func validWebhooks(n node) {
	hooks := n.get("webhooks")
	hooks.unique("name")
	for _, h := range hooks.items() {
		name := h.get("name")
		*n.errs = append(*n.errs, validation.IsFullyQualifiedName(name.path(), name.text())...)
		if f := h.get("sideEffects"); f.text() == "" {
			f.required("must specify one of None, NoneOnDryRun")
		} else {
			f.oneOf("None", "NoneOnDryRun")
		}
		if f := h.get("admissionReviewVersions"); f.size() == 0 {
			f.required("must specify one of v1, v1beta1")
		}
		h.get("failurePolicy").oneOf("Fail", "Ignore")
		h.get("matchPolicy").oneOf("Equivalent", "Exact")
		if i, ok := h.get("timeoutSeconds").number(); ok && (i < 1 || i > 30) {
			h.get("timeoutSeconds").invalid("the timeout value must be between 1 and 30 seconds")
		}
		h.get("namespaceSelector").selector()
		h.get("objectSelector").selector()
		c := h.get("clientConfig")
		if c.get("url").set() == c.get("service").set() {
			c.fail(field.Required(c.path(), "exactly one of url or service is required"))
		}
	}
}
