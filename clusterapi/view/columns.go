package view

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// WriteColumns writes the objects of a kind as oc get prints them at a time, sorted
// by name: kind is ClusterVersion, ClusterOperator or MachineConfigPool. To errOut it
// writes that there are none, or why not all could be read. It returns an error for
// another kind, and if writing fails.
func WriteColumns(out, errOut io.Writer, o *Objects, kind string, now time.Time) error {
	var header []string
	var lines [][]string
	switch kind {
	case kindVersion:
		header = []string{"NAME", "VERSION", "AVAILABLE", "PROGRESSING", "SINCE", "STATUS"}
		if cv := o.ClusterVersion; cv != nil {
			lines = append(lines, versionColumns(cv, now))
		}
	case kindOperator:
		header = []string{"NAME", "VERSION", "AVAILABLE", "PROGRESSING", "DEGRADED", "SINCE"}
		for _, co := range o.ClusterOperators {
			if co != nil {
				lines = append(lines, operatorColumns(co, now))
			}
		}
	case kindPool:
		header = []string{"NAME", "CONFIG", "UPDATED", "UPDATING", "DEGRADED",
			"MACHINECOUNT", "READYMACHINECOUNT", "UPDATEDMACHINECOUNT", "DEGRADEDMACHINECOUNT", "AGE"}
		for _, pool := range o.MachineConfigPools {
			if pool != nil {
				lines = append(lines, poolColumns(pool, now))
			}
		}
	default:
		return fmt.Errorf("no columns for kind %q", kind)
	}
	note := ""
	if reason := o.missing(kind); reason != "" {
		note = fmt.Sprintf("warning: %s: %s\n", kind, reason)
	} else if len(lines) == 0 {
		note = "No resources found\n"
	}
	warn := text.NewWriter(errOut)
	warn.Print(note)
	if len(lines) == 0 {
		return text.Written(warn)
	}
	slices.SortStableFunc(lines, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	t := text.NewTable(text.NewWriter(out), 0, 3)
	t.Row(header...)
	for _, line := range lines {
		for i, text := range line {
			line[i] = lineText(text)
		}
		t.Row(line...)
	}
	return errors.Join(t.Flush(), text.Written(warn))
}

func versionColumns(cv *configv1.ClusterVersion, now time.Time) []string {
	version := ""
	for _, h := range cv.Status.History {
		if h.State == configv1.CompletedUpdate {
			version = h.Version
			break
		}
	}
	available, _ := statusOf(cv.Status.Conditions, configv1.OperatorAvailable, now)
	progressing, since := statusOf(cv.Status.Conditions, configv1.OperatorProgressing, now)
	message := ""
	if c := openshift.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing); c != nil {
		message = c.Message
	}
	return []string{cv.Name, version, available, progressing, since, message}
}

func operatorColumns(co *configv1.ClusterOperator, now time.Time) []string {
	version := ""
	for _, v := range co.Status.Versions {
		if v.Name == "operator" {
			version = v.Version
			break
		}
	}
	available, since := statusOf(co.Status.Conditions, configv1.OperatorAvailable, now)
	progressing, _ := statusOf(co.Status.Conditions, configv1.OperatorProgressing, now)
	degraded, _ := statusOf(co.Status.Conditions, configv1.OperatorDegraded, now)
	return []string{co.Name, version, available, progressing, degraded, since}
}

// statusOf returns the status of a condition and for how long it has had it, both
// empty without one.
func statusOf(
	conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType, now time.Time,
) (status, age string) {
	if c := openshift.FindCondition(conditions, t); c != nil {
		return string(c.Status), ageText(c.LastTransitionTime.Time, now)
	}
	return "", ""
}

func poolColumns(pool *mcfgv1.MachineConfigPool, now time.Time) []string {
	status := map[mcfgv1.MachineConfigPoolConditionType]string{}
	for _, c := range pool.Status.Conditions {
		status[c.Type] = string(c.Status)
	}
	count := func(n int32) string { return strconv.Itoa(int(n)) }
	s := pool.Status
	return []string{pool.Name, s.Configuration.Name,
		status[mcfgv1.MachineConfigPoolUpdated], status[mcfgv1.MachineConfigPoolUpdating], status[mcfgv1.MachineConfigPoolDegraded],
		count(s.MachineCount), count(s.ReadyMachineCount), count(s.UpdatedMachineCount), count(s.DegradedMachineCount),
		ageText(pool.CreationTimestamp.Time, now)}
}

// ageText is an age as kubectl prints it, empty if it is not known.
func ageText(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(since))
}

// lineText makes a cell of a text, as kubectl does: its first line, without what
// would control a terminal.
func lineText(text string) string {
	if i := strings.IndexAny(text, "\f\n\r"); i >= 0 {
		text = text[:i] + "..."
	}
	return strings.ReplaceAll(text, "\x1b", "^[")
}
