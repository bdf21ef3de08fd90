package preconditions

import (
	"encoding/json"
	"slices"
)

// Readiness is a report in the form of the version operator's readiness data, for
// programs that read that: an object by topic, each with _status (ok or error),
// _error and _elapsed_seconds, and beside these what the checks of the topic found.
// Unlike that data it has verdicts. It is plain data.
type Readiness map[string]ReadinessTopic

// ReadinessTopic is what was found about one topic.
type ReadinessTopic struct {
	Status   string             `json:"_status"` // ok, or error where a check could not be evaluated
	Error    string             `json:"_error,omitempty"`
	Elapsed  float64            `json:"_elapsed_seconds"` // of the slowest check, in seconds
	Findings []ReadinessFinding `json:"findings"`
}

// ReadinessFinding is a finding with the check that has it.
type ReadinessFinding struct {
	Check string
	Finding
}

// MarshalJSON writes the fields of the finding beside the check's name.
func (f ReadinessFinding) MarshalJSON() ([]byte, error) {
	type fields Finding // without the methods
	return json.Marshal(struct {
		Check string `json:"check"`
		fields
	}{f.Check, fields(f.Finding)})
}

// Readiness returns the report by the topics of the operator's readiness data.
// Checks that belong to none of them are left out; a topic without a check in the
// report is left out too.
func (r *Report) Readiness() Readiness {
	out := Readiness{}
	for _, topic := range readinessTopics() {
		t := ReadinessTopic{Status: "ok", Findings: []ReadinessFinding{}}
		any := false
		for _, result := range r.Results {
			if !slices.Contains(topic.checks, result.Check) {
				continue
			}
			any = true
			t.Elapsed = max(t.Elapsed, result.Elapsed.Seconds())
			if result.Err != nil {
				t.Status = "error"
				if t.Error != "" {
					t.Error += "; "
				}
				t.Error += result.Check + ": " + result.Err.Error()
			}
			if result.State == NotApplicable {
				continue
			}
			for _, f := range result.Findings {
				t.Findings = append(t.Findings, ReadinessFinding{result.Check, f})
			}
		}
		if any {
			out[topic.name] = t
		}
	}
	return out
}

type readinessTopic struct {
	name   string
	checks []string
}

func readinessTopics() []readinessTopic {
	return []readinessTopic{
		{"cluster_conditions", []string{ClusterVersionUpgradeable, "UpdateInProgress", "VersionOverrides", "FeatureSet", "AdminAcks"}},
		{"operator_health", []string{"ClusterOperators", "UnsupportedOverrides"}},
		{"api_deprecations", []string{"DeprecatedAPIs"}},
		{"node_capacity", []string{"NodesUnavailable", "SpareCapacity", "MaxUnavailable", "KubeletSkew"}},
		{"pdb_drain", []string{"DisruptionBudgets"}},
		{"etcd_health", []string{"EtcdBackup"}},
		{"network", []string{"NetworkPlugin", "Disconnected"}},
		{"olm_operator_lifecycle", []string{"OperatorCompatibility"}},
	}
}
