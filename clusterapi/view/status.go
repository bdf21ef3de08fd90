package view

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// Status is how an update of a cluster does: what oc adm upgrade status shows. It
// is plain data.
type Status struct {
	// Now is the time of the status, and Started the time at which the update
	// started.
	Now     time.Time  `json:"now"`
	Started *time.Time `json:"started,omitempty"`
	// UpdatingFor is the time in between, in seconds.
	UpdatingFor metav1.Duration `json:"updatingFor"`
	// Updating reports that the control plane or a node is being updated. A node whose
	// version is unknown, since MachineConfigs could not be read, does not count. If nothing
	// is updated, ControlPlane and Health are left out.
	Updating     bool          `json:"updating"`
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// Pools are the machine config pools, including the control plane's.
	Pools []Pool `json:"pools"`
	// Health starts with what matters most. It is empty if all is well.
	Health []Insight `json:"health"`
	// Waits is what the update waits on, one chain for each cause.
	Waits []Chain `json:"waits"`
	// Preflights are the checks of releases that were requested, with what they found.
	Preflights []clusterversion.Preflight `json:"preflights,omitempty"`
	// Unknown is what the status does not know, since it could not be read.
	Unknown []Unknown `json:"unknown,omitempty"`
	// Assumed are the kinds of which a recording is assumed to have all objects.
	Assumed []string `json:"assumed,omitempty"`
}

// Unknown is something that a status does not know. It is plain data.
type Unknown struct {
	Kind   string `json:"kind"`   // of objects, or Alert
	Reason string `json:"reason"` // why they could not be read
	Effect string `json:"effect"` // what is not known without them
}

// The errors of a status are texts that users know.
var (
	errNoVersion     = errors.New("no cluster version information available - you must be connected to an OpenShift version 4 server to fetch the current version")
	errNoOperators   = errors.New("no cluster operator information available - you must be connected to an OpenShift version 4 server")
	errNoProgressing = errors.New("no current Progressing info, see `oc describe clusterversion` for more details.\n")
)

// AssessStatus computes the status of an update at a time. It fails without a
// ClusterVersion, its Progressing condition or a ClusterOperator (with
// [ErrNoPlatformOperators] where none is of the release), and for a pool whose
// selector is invalid. It can be called concurrently.
func AssessStatus(o *Objects, now time.Time) (*Status, error) {
	switch reason := o.missing(kindVersion); {
	case o.ClusterVersion == nil && reason != "":
		return nil, fmt.Errorf("the cluster version is unknown: %s", reason)
	case o.ClusterVersion == nil:
		return nil, errNoVersion
	}
	if !slices.ContainsFunc(o.ClusterOperators, func(co *configv1.ClusterOperator) bool { return co != nil }) {
		if reason := o.missing(kindOperator); reason != "" {
			return nil, fmt.Errorf("the cluster operators are unknown: %s", reason)
		}
		return nil, errNoOperators
	}
	cv := o.ClusterVersion
	progressing := openshift.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing)
	if progressing == nil {
		return nil, errNoProgressing
	}
	started := progressing.LastTransitionTime.Time
	if h := cv.Status.History; len(h) > 0 && !h[0].StartedTime.IsZero() {
		started = h[0].StartedTime.Time
	}
	now = now.UTC()
	in := insightInput{now: now, started: started}
	ops := platformOperators(o)
	pools, insights, err := assessPools(o, in)
	if err != nil {
		return nil, err
	}
	s := &Status{Now: now, Started: known(started), Pools: pools, Health: []Insight{}, Preflights: clusterversion.Preflights(&cv.Status)}
	if s.Started != nil {
		s.UpdatingFor.Duration = max(now.Sub(started), 0).Round(time.Second)
	}
	outdated := func(n Node) bool {
		return n.Phase != phaseUpdated && !n.isUnknown(o)
	}
	s.Updating = progressing.Status == configv1.ConditionTrue || slices.ContainsFunc(pools, func(p Pool) bool {
		return p.Name != masterPool && slices.ContainsFunc(p.Nodes, outdated)
	})
	s.Unknown, s.Assumed = unknowns(o, ops), slices.Clone(o.Assumed)
	if s.Updating {
		controlPlane, err := assessControlPlane(cv, ops, now, started)
		if reason := o.missing(kindOperator); err != nil && reason != "" {
			return nil, fmt.Errorf("%w, and not all could be read: %s", err, reason)
		} else if err != nil {
			return nil, err
		}
		s.ControlPlane = &controlPlane
		for i := range o.Alerts {
			insights = append(insights, in.ofAlert((*openshift.Alert)(&o.Alerts[i]))...)
		}
		insights = append(insights, in.ofVersion(cv)...)
		for _, co := range ops.platform {
			insights = append(insights, in.ofOperator(co)...)
		}
		if !controlPlane.done() {
			insights = append(insights, in.ofHistory(cv)...)
		}
		s.Health = append(s.Health, sortInsights(insights)...)
	}
	s.Waits = findWaits(o, ops, s)
	return s, nil
}

// effects describes what is not known without the objects of a kind.
var effects = []struct{ kind, effect string }{
	{kindOperator, "counts of operators may be too low"},
	{kindPool, "whether nodes are updated is unknown"},
	{kindNode, "whether nodes are updated is unknown"},
	{kindConfig, "versions of nodes are unknown, and so is whether they are updated"},
	{kindDeploy, "whether the machine-config operator is updated is unknown"},
	{kindDeploy, fewerWaits},
	{kindDaemon, fewerWaits},
	{kindPod, unknownDrains},
	{kindBudget, unknownDrains},
	{kindAlert, "alerts are missing from the update's health"},
}

// fewerWaits is the effect of a failed read that only chains need.
const fewerWaits = "what the update waits on may lack workloads that are not ready"

// unknownDrains is the effect of a failed read that only drains need.
const unknownDrains = "what holds drains is unknown"

// unknowns lists what could not be read and would matter: each kind once.
func unknowns(o *Objects, ops operators) []Unknown {
	var all []Unknown
	for _, e := range effects {
		reason := o.missing(e.kind)
		matters := true
		switch {
		case e.effect == fewerWaits:
			matters = consistsOf(o.Components, e.kind)
		case e.kind == kindDeploy:
			matters = needsDeployment(o, ops)
		}
		if listed := len(all) > 0 && all[len(all)-1].Kind == e.kind; reason != "" && matters && !listed {
			all = append(all, Unknown{Kind: e.kind, Reason: reason, Effect: e.effect})
		}
	}
	return all
}

// consistsOf reports that a component has an object of a kind.
func consistsOf(components []Component, kind string) bool {
	return slices.ContainsFunc(components, func(c Component) bool {
		return slices.ContainsFunc(c.Objects, func(r Resource) bool { return r.Kind == kind })
	})
}

// needsDeployment reports that the deployment of the machine-config operator
// decides, and is not there.
func needsDeployment(o *Objects, ops operators) bool {
	for _, co := range ops.platform {
		if co.Name == machineConfigOperator && reportsVersion(co, o.ClusterVersion.Status.Desired.Version) {
			return !ops.updated[co.Name] && machineConfigImage(o.Deployments) == ""
		}
	}
	return false
}

// Details is what a status shows in full: see [ParseDetails].
type Details string

// The details.
const (
	detailsNone      Details = "none"
	detailsAll       Details = "all"
	detailsNodes     Details = "nodes"
	detailsHealth    Details = "health"
	detailsOperators Details = "operators"
)

// ParseDetails reads the value of a flag: none, all, nodes, health or operators. It
// returns an error for another name.
func ParseDetails(name string) (Details, error) {
	switch d := Details(name); d {
	case detailsNone, detailsAll, detailsNodes, detailsHealth, detailsOperators:
		return d, nil
	}
	return "", fmt.Errorf("invalid value for --details: %s (must be one of none, all, nodes, health, operators)", name)
}

// shows reports that a part is to be shown in full.
func (d Details) shows(part Details) bool { return d == detailsAll || d == part }

// StatusText are the options of [Status.WriteText]. The zero value works. They
// are plain data.
type StatusText struct {
	Details Details // none, all, nodes, health or operators; empty means none
	Docs418 bool    // as the documentation of 4.18 has it
	// Waits adds what the update waits on, which the command line tool does not
	// show.
	Waits bool
	// Width cuts the lines of what the update waits on, in columns; 0: they have any
	// length.
	Width int
}

// WriteText writes the status as oc adm upgrade status prints it: what it shows to
// out, and what it does not know to errOut. It fails when writing does, and for
// details that are not known. It can be called concurrently on one status.
func (s *Status) WriteText(out, errOut io.Writer, o StatusText) error {
	details, err := ParseDetails(string(cmp.Or(o.Details, detailsNone)))
	if err != nil {
		return err
	}
	o.Details = details
	w, warn := text.NewWriter(out), text.NewWriter(errOut)
	for _, u := range s.Unknown {
		if u.Kind == kindAlert {
			fmt.Fprintf(warn, "Unable to fetch alerts, ignoring alerts in 'Update Health': %s\n", u.Reason)
			continue
		}
		fmt.Fprintf(warn, "warning: %s: %s: %s\n", u.Kind, u.Reason, u.Effect)
	}
	if len(s.Assumed) > 0 {
		fmt.Fprintf(warn, "warning: %s: assumed to be recorded completely\n", strings.Join(s.Assumed, ", "))
	}
	s.writeSections(w, o)
	return text.Written(w, warn)
}

func (s *Status) writeSections(w *text.Writer, o StatusText) {
	if !s.Updating {
		if nodes := s.unknownNodes(); nodes != "" {
			fmt.Fprintf(w, "The control plane is not updating. Whether nodes are is unknown: %s\n", nodes)
		} else {
			w.Print("The cluster is not updating.\n")
		}
		if o.Waits {
			writeWaits(w, s, o.Width)
		}
		writePreflights(w, s.Preflights)
		return
	}
	writeControlPlane(w, s.ControlPlane, s.Now, o)
	for _, u := range s.Unknown {
		if u.Kind == kindOperator {
			fmt.Fprintf(w, "\nWhether all operators are updated is unknown: %s: %s\n", u.Kind, u.Reason)
		}
	}
	for i := range s.Pools {
		if s.Pools[i].Name == masterPool {
			writeNodes(w, &s.Pools[i], o)
			break
		}
	}
	if nodes := s.unknownNodes(); nodes != "" {
		fmt.Fprintf(w, "\nWhether all nodes are updated is unknown: %s\n", nodes)
	}
	writePools(w, s.Pools, o)
	if o.Waits {
		writeWaits(w, s, o.Width)
	}
	writeHealth(w, s, o)
	writePreflights(w, s.Preflights)
}

// unknownNodes explains why not all nodes are known, "" where they are.
func (s *Status) unknownNodes() string {
	for _, u := range s.Unknown {
		if u.Kind == kindPool || u.Kind == kindNode || u.Kind == kindConfig && !s.Updating {
			return u.Kind + ": " + u.Reason
		}
	}
	return ""
}

// String is the status in one line. It can be called concurrently.
func (s *Status) String() string {
	var b strings.Builder
	c := s.ControlPlane
	switch {
	case c == nil && s.unknownNodes() != "":
		b.WriteString("control plane not updating, nodes unknown")
	case c == nil:
		b.WriteString("not updating")
	default:
		fmt.Fprintf(&b, "%s: %s, %d of %d operators updated", c.Target, c.Assessment, c.Updated, c.Total)
		for _, p := range s.Pools {
			if p.Total > 0 {
				fmt.Fprintf(&b, ", %s %d of %d nodes", p.Name, p.Updated, p.Total)
			}
		}
	}
	if len(s.Waits) > 0 {
		b.WriteString("; waits on " + s.Waits[0].String())
	}
	if more := len(s.Waits) - 1; more > 0 {
		fmt.Fprintf(&b, " (and %d more)", more)
	}
	if line := preflightLine(s.Preflights); line != "" {
		b.WriteString("; " + line)
	}
	return b.String()
}

// Same reports that two statuses differ in nothing but the time that passed. Nil is
// the same as nil alone. It can be called concurrently.
func (s *Status) Same(other *Status) bool {
	if s == nil || other == nil {
		return s == other
	}
	return reflect.DeepEqual(s.timeless(), other.timeless())
}

// timeless is the status without what changes by itself.
func (s *Status) timeless() Status {
	t := *s
	t.Now, t.UpdatingFor = time.Time{}, metav1.Duration{}
	if t.ControlPlane != nil {
		c := *t.ControlPlane
		c.Duration, c.Remaining, c.EstimatedDuration = metav1.Duration{}, metav1.Duration{}, metav1.Duration{}
		c.Updating = slices.Clone(c.Updating)
		for i := range c.Updating {
			c.Updating[i].Age = metav1.Duration{}
		}
		t.ControlPlane = &c
	}
	t.Health = slices.Clone(t.Health)
	for i := range t.Health { // what is true now has no time
		if since := t.Health[i].Since; since != nil && since.Equal(s.Now) {
			t.Health[i].Since = nil
		}
	}
	return t
}
