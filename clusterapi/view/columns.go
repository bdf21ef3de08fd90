package view

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// ClusterVersionRow is a line of oc get clusterversion. It is plain data.
type ClusterVersionRow struct {
	Name        string    `json:"name"`
	Version     string    `json:"version"` // the newest that was completed
	Available   string    `json:"available"`
	Progressing string    `json:"progressing"`
	Since       time.Time `json:"since,omitzero"` // of Progressing
	Status      string    `json:"status"`         // its message
}

// ClusterOperatorRow is a line of oc get clusteroperators. It is plain data.
type ClusterOperatorRow struct {
	Name        string    `json:"name"`
	Version     string    `json:"version"` // of the operator itself
	Available   string    `json:"available"`
	Progressing string    `json:"progressing"`
	Degraded    string    `json:"degraded"`
	Since       time.Time `json:"since,omitzero"` // of Available
}

// PoolRow is a line of oc get mcp. It is plain data.
type PoolRow struct {
	Name             string    `json:"name"`
	Config           string    `json:"config"`
	Updated          string    `json:"updated"`
	Updating         string    `json:"updating"`
	Degraded         string    `json:"degraded"`
	Machines         int32     `json:"machineCount"`
	ReadyMachines    int32     `json:"readyMachineCount"`
	UpdatedMachines  int32     `json:"updatedMachineCount"`
	DegradedMachines int32     `json:"degradedMachineCount"`
	Created          time.Time `json:"created,omitzero"`
}

// ClusterVersionRows returns the lines of ClusterVersions by name. Nil elements
// are passed over. It can be called concurrently.
func ClusterVersionRows(versions []*configv1.ClusterVersion) []ClusterVersionRow {
	return rows(versions, func(cv *configv1.ClusterVersion) ClusterVersionRow {
		row := ClusterVersionRow{Name: cv.Name}
		for _, h := range cv.Status.History {
			if h.State == configv1.CompletedUpdate {
				row.Version = h.Version
				break
			}
		}
		row.Available, _ = statusOf(cv.Status.Conditions, configv1.OperatorAvailable)
		row.Progressing, row.Since = statusOf(cv.Status.Conditions, configv1.OperatorProgressing)
		if c := find(cv.Status.Conditions, configv1.OperatorProgressing); c != nil {
			row.Status = c.Message
		}
		return row
	}, func(row ClusterVersionRow) string { return row.Name })
}

// ClusterOperatorRows returns the lines of ClusterOperators by name. Nil elements
// are passed over. It can be called concurrently.
func ClusterOperatorRows(operators []*configv1.ClusterOperator) []ClusterOperatorRow {
	return rows(operators, func(co *configv1.ClusterOperator) ClusterOperatorRow {
		row := ClusterOperatorRow{Name: co.Name}
		for _, v := range co.Status.Versions {
			if v.Name == "operator" {
				row.Version = v.Version
				break
			}
		}
		row.Available, row.Since = statusOf(co.Status.Conditions, configv1.OperatorAvailable)
		row.Progressing, _ = statusOf(co.Status.Conditions, configv1.OperatorProgressing)
		row.Degraded, _ = statusOf(co.Status.Conditions, configv1.OperatorDegraded)
		return row
	}, func(row ClusterOperatorRow) string { return row.Name })
}

// PoolRows returns the lines of MachineConfigPools by name. Nil elements are
// passed over. It can be called concurrently.
func PoolRows(pools []*mcfgv1.MachineConfigPool) []PoolRow {
	return rows(pools, func(pool *mcfgv1.MachineConfigPool) PoolRow {
		return PoolRow{
			Name:             pool.Name,
			Config:           pool.Status.Configuration.Name,
			Updated:          poolStatusOf(pool, mcfgv1.MachineConfigPoolUpdated),
			Updating:         poolStatusOf(pool, mcfgv1.MachineConfigPoolUpdating),
			Degraded:         poolStatusOf(pool, mcfgv1.MachineConfigPoolDegraded),
			Machines:         pool.Status.MachineCount,
			ReadyMachines:    pool.Status.ReadyMachineCount,
			UpdatedMachines:  pool.Status.UpdatedMachineCount,
			DegradedMachines: pool.Status.DegradedMachineCount,
			Created:          pool.CreationTimestamp.Time,
		}
	}, func(row PoolRow) string { return row.Name })
}

// WriteClusterVersionRows writes lines as oc get clusterversion prints them at a
// time; without any, it says so to errOut. It fails when writing does. It can be
// called concurrently.
func WriteClusterVersionRows(out, errOut io.Writer, rows []ClusterVersionRow, now time.Time) error {
	lines := [][]string{{"NAME", "VERSION", "AVAILABLE", "PROGRESSING", "SINCE", "STATUS"}}
	for _, r := range rows {
		lines = append(lines, []string{r.Name, r.Version, r.Available, r.Progressing, ageText(r.Since, now), r.Status})
	}
	return writeLines(out, errOut, lines)
}

// WriteClusterOperatorRows writes lines as oc get clusteroperators prints them at a
// time; without any, it says so to errOut. It fails when writing does. It can be
// called concurrently.
func WriteClusterOperatorRows(out, errOut io.Writer, rows []ClusterOperatorRow, now time.Time) error {
	lines := [][]string{{"NAME", "VERSION", "AVAILABLE", "PROGRESSING", "DEGRADED", "SINCE"}}
	for _, r := range rows {
		lines = append(lines, []string{r.Name, r.Version, r.Available, r.Progressing, r.Degraded, ageText(r.Since, now)})
	}
	return writeLines(out, errOut, lines)
}

// WritePoolRows writes lines as oc get mcp prints them at a time; without any, it
// says so to errOut. It fails when writing does. It can be called concurrently.
func WritePoolRows(out, errOut io.Writer, rows []PoolRow, now time.Time) error {
	lines := [][]string{{"NAME", "CONFIG", "UPDATED", "UPDATING", "DEGRADED", "MACHINECOUNT", "READYMACHINECOUNT", "UPDATEDMACHINECOUNT", "DEGRADEDMACHINECOUNT", "AGE"}}
	count := func(n int32) string { return strconv.Itoa(int(n)) }
	for _, r := range rows {
		lines = append(lines, []string{r.Name, r.Config, r.Updated, r.Updating, r.Degraded,
			count(r.Machines), count(r.ReadyMachines), count(r.UpdatedMachines), count(r.DegradedMachines), ageText(r.Created, now)})
	}
	return writeLines(out, errOut, lines)
}

// rows makes a row of each object that is there, by name.
func rows[T, R any](objects []*T, row func(*T) R, name func(R) string) []R {
	all := []R{}
	for _, o := range objects {
		if o != nil {
			all = append(all, row(o))
		}
	}
	slices.SortStableFunc(all, func(a, b R) int { return cmp.Compare(name(a), name(b)) })
	return all
}

// statusOf returns the status of a condition and since when it has it.
func statusOf(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) (string, time.Time) {
	if c := find(conditions, t); c != nil {
		return string(c.Status), c.LastTransitionTime.Time
	}
	return "", time.Time{}
}

func poolStatusOf(pool *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType) string {
	for _, c := range pool.Status.Conditions {
		if c.Type == t {
			return string(c.Status)
		}
	}
	return ""
}

// ageText is an age as kubectl prints it, empty where it is not known.
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

// writeLines writes a header and rows as kubectl does.
func writeLines(out, errOut io.Writer, lines [][]string) error {
	if len(lines) == 1 {
		_, err := io.WriteString(errOut, "No resources found\n")
		return err
	}
	t := wideTable(out)
	for _, line := range lines {
		cells := make([]string, len(line))
		for i, text := range line {
			cells[i] = lineText(text)
		}
		t.row(cells...)
	}
	return t.flush()
}
