package memory

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (n node) job() {
	n.notNegative("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes")
	n.get("completionMode").oneOf("Indexed", "NonIndexed")
	if n.get("completionMode").text() == "Indexed" && !n.get("completions").set() {
		n.get("completions").required("when completion mode is Indexed")
	}
	template := n.get("template")
	if s := n.get("selector"); s.set() { // else one is made
		if selector := s.selector(); selector != nil && !selector.Matches(labelsAt(template)) {
			template.get("metadata", "labels").invalid("`selector` does not match template `labels`")
		}
	}
	template.template()
	if f := template.get("spec", "restartPolicy"); f.text() == "" || f.text() == "Always" {
		f.fail(field.Required(f.path(), fmt.Sprintf("valid values: %q, %q", "OnFailure", "Never")))
	}
}

func updatedJob(old, n node) {
	a, b := old.get("spec"), n.get("spec")
	immutable(a, b, "completions", "selector")
	if !a.get("suspend").yes() {
		immutable(a, b, "template")
	}
	immutable(a, b, "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
}

func validCronJob(n node) {
	s := n.get("spec")
	if schedule := s.get("schedule"); schedule.filled() {
		if text := schedule.text(); !strings.HasPrefix(text, "@") && len(strings.Fields(text)) != 5 {
			schedule.invalid(fmt.Sprintf("expected exactly 5 fields, found %d: %v", len(strings.Fields(text)), strings.Fields(text)))
		}
	}
	s.get("concurrencyPolicy").oneOf("Allow", "Forbid", "Replace")
	s.notNegative("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
	s.get("jobTemplate", "spec").job()
}
