package clusterupdate

import (
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/runlevel"
)

// Summary words a reason for the message of Progressing. The name of the
// object in trouble may be empty. It never returns an empty text; where there
// is no reason at all, callers say "an error occurred".
func reasonSummary(reason, name string) string {
	if text, ok := plainSummaries[reason]; ok {
		return text
	}
	if texts, ok := namedSummaries[reason]; ok {
		if name == "" {
			return texts.without
		}
		return fmt.Sprintf(texts.with, name)
	}
	if strings.HasPrefix(reason, "UpdatePayload") {
		return "the update could not be applied"
	}
	if name == "" {
		return "an unknown error has occurred: " + reason
	}
	return name + " has an unknown error: " + reason
}

var plainSummaries = map[string]string{
	runlevel.ReasonResourceNotFound:    "some resources could not be updated",
	runlevel.ReasonResourceConflict:    "some resources could not be updated",
	runlevel.ReasonClusterDown:         "the control plane is down or not responding",
	runlevel.ReasonClusterError:        "the control plane is reporting an internal error",
	runlevel.ReasonClusterOverloaded:   "the control plane is overloaded and is not accepting updates",
	runlevel.ReasonClusterUnauthorized: "could not authenticate to the server",
	"UpdatePayloadRetrievalFailed":     "could not download the update",
	runlevel.ReasonResourceForbidden:   "the server is rejecting updates",
	runlevel.ReasonResourceTypeMissing: "a required extension is not available to update",
	runlevel.ReasonResourceInvalid:     "some cluster configuration is invalid",
	"UpdatePayloadIntegrity":           "the contents of the update are invalid",
	"ImageVerificationFailed":          "the image may not be safe to use",
	"UpgradePreconditionCheckFailed":   "it may not be safe to apply this update",
	"ClusterOperatorsNotAvailable":     "some cluster operators are not available",
}

var namedSummaries = map[string]struct{ with, without string }{
	runlevel.ReasonOperatorDegraded:       {"the cluster operator %s is degraded", "a cluster operator is degraded"},
	runlevel.ReasonOperatorNotAvailable:   {"the cluster operator %s is not available", "a cluster operator is not available"},
	runlevel.ReasonOperatorNoVersions:     {"the cluster operator %s does not declare expected versions", "a cluster operator does not declare expected versions"},
	runlevel.ReasonWorkloadNotAvailable:   {"the workload %s has not yet successfully rolled out", "a workload has not yet rolled out"},
	runlevel.ReasonWorkloadNotProgressing: {"the workload %s cannot roll out", "a workload cannot roll out"},
}
