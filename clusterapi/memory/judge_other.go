package memory

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// policyRules are those of disruption budgets.
func policyRules(kind string) rules {
	if kind != "PodDisruptionBudget" {
		return rules{}
	}
	return rules{valid: func(n node) {
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
	}}
}

// otherRules are those of kinds in groups of their own.
func otherRules(gk schema.GroupKind) rules {
	switch gk.Kind {
	case "PriorityClass":
		return rules{valid: validPriorityClass, update: func(old, n node) {
			if !equal(old.get("value").v, n.get("value").v) {
				n.get("value").forbidden("may not be changed in an update.")
			}
			if or(old.get("preemptionPolicy").text(), "PreemptLowerPriority") != or(n.get("preemptionPolicy").text(), "PreemptLowerPriority") {
				n.get("preemptionPolicy").invalid("field is immutable")
			}
		}}
	case "StorageClass":
		return rules{valid: func(n node) {
			if p := n.get("provisioner"); p.filled() {
				p.each(validation.IsQualifiedName(strings.ToLower(p.text())))
			}
			n.get("reclaimPolicy").oneOf("Delete", "Retain")
			n.get("volumeBindingMode").oneOf("Immediate", "WaitForFirstConsumer")
		}, update: func(old, n node) {
			immutable(old, n, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
		}}
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return rules{valid: validWebhooks}
	case "NetworkPolicy":
		return rules{valid: func(n node) {
			s := n.get("spec")
			s.get("podSelector").selector()
			for _, t := range s.get("policyTypes").items() {
				t.oneOf("Egress", "Ingress")
			}
		}}
	case "RuntimeClass":
		return rules{valid: func(n node) { n.get("handler").label() }, update: func(old, n node) { immutable(old, n, "handler") }}
	case "FlowSchema":
		return rules{valid: func(n node) {
			s := n.get("spec")
			if i, ok := s.get("matchingPrecedence").number(); ok && (i < 1 || i > 10000) {
				s.get("matchingPrecedence").invalid("must be a number between 1 and 10000 (both inclusive)")
			}
			if name := s.get("priorityLevelConfiguration", "name"); name.text() == "" {
				name.required("must reference a priority level")
			}
		}}
	case "PriorityLevelConfiguration":
		return rules{name: segment, valid: func(n node) {
			n.get("spec", "type").needsOneOf("Exempt", "Limited")
		}}
	case "APIService":
		return rules{name: segment}
	}
	return rules{}
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
