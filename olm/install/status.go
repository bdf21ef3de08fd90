package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// Condition types of a Subscription. True is bad.
const (
	subscriptionResolutionFailed    = "ResolutionFailed"
	subscriptionBundleUnpacking     = "BundleUnpacking"
	subscriptionBundleUnpackFailed  = "BundleUnpackFailed"
	subscriptionCatalogsUnhealthy   = "CatalogSourcesUnhealthy"
	subscriptionInstallPlanPending  = "InstallPlanPending"
	subscriptionInstallPlanFailed   = "InstallPlanFailed"
	subscriptionInstallPlanMissing  = "InstallPlanMissing"
	subscriptionPackageDeprecated   = "PackageDeprecated"
	subscriptionChannelDeprecated   = "ChannelDeprecated"
	subscriptionBundleDeprecated    = "BundleDeprecated"
	subscriptionDeprecated          = "Deprecated"
	reasonConstraintsNotSatisfiable = "ConstraintsNotSatisfiable"
	reasonErrorPreventedResolution  = "ErrorPreventedResolution"
	reasonUnpackingInProgress       = "UnpackingInProgress"
	reasonBundleUnpackFailed        = "BundleUnpackFailed"
	reasonErrorPreventedUnpacking   = "ErrorPreventedUnpacking"
	reasonEnsureInstallPlanFailed   = "EnsureInstallPlanFailed"
	reasonUnhealthyCatalog          = "UnhealthyCatalogSourceFound"
	reasonAllCatalogsHealthy        = "AllCatalogSourcesHealthy"
	reasonCatalogsAdded             = "CatalogSourcesAdded"
	reasonCatalogsDeleted           = "CatalogSourcesDeleted"
	reasonCatalogsUpdated           = "CatalogSourcesUpdated"
	reasonNoCatalogs                = "NoCatalogSourcesFound"
	reasonInstallPlanNotReconciled  = "InstallPlanNotYetReconciled"
	reasonInstallPlanFailed         = "InstallPlanFailed"
	reasonReferencedPlanNotFound    = "ReferencedInstallPlanNotFound"
	textAllCatalogsHealthy          = "all available catalogsources are healthy"
	textNoCatalogs                  = "dependency resolution requires at least one catalogsource"
	textUnpackFailed                = "Bundle unpacking failed"
)

// observedStatus returns the status of a Subscription as far as it follows from
// what is there: its state, the operator that it has, its InstallPlan, the
// health of catalogs, and what is deprecated. The conditions of a resolution
// and of unpacking are left as they are: see [resolvedStatus]. Applied to its
// own result it changes nothing, except that a change of healthy catalogs is
// the reason of their condition once.
func observedStatus(sub *olmapi.Subscription, s *State) olmapi.SubscriptionStatus {
	w := statusWriter{status: copyStatus(&sub.Status), now: metav1.NewTime(s.Now)}
	w.adoptPlan(sub, s.Plans)
	w.adoptOperator(sub, s.Snapshot)
	w.plan(s)
	w.csvState(s)
	w.catalogHealth(sub, s.Snapshot.Catalogs)
	w.deprecations(sub, s.Snapshot.Catalogs)
	return w.finish(&sub.Status)
}

// resolution is the outcome of a resolution for the Subscriptions of its
// namespace. The zero value means that it went well and changes nothing.
type resolution struct {
	// Err is why the resolution failed.
	Err error
	// HeldBack is why Subscriptions get nothing new, by name.
	HeldBack map[string]heldBack
	// Current are the Subscriptions that progress, Plan the InstallPlan that
	// they progress with; nil without.
	Current []currentCSV
	Plan    *olmapi.InstallPlan
	// Unpack is why the bundles could not be unpacked, and UnpackReason one of the
	// reasons of condition BundleUnpackFailed. Unpacking reports that it is not
	// done yet.
	Unpack       error
	UnpackReason string
	Unpacking    bool
}

// resolvedStatus returns the status of a Subscription after a resolution: condition
// ResolutionFailed on all Subscriptions if the resolution failed, and if one was
// made on those alone that get nothing new though there is something; the operator
// and the InstallPlan that it progresses to.
func resolvedStatus(sub *olmapi.Subscription, r *resolution, now metav1.Time) olmapi.SubscriptionStatus {
	w := statusWriter{status: copyStatus(&sub.Status), now: now}
	w.resolution(sub, r)
	switch {
	case r.Unpack != nil:
		message := r.Unpack.Error()
		if r.UnpackReason == reasonBundleUnpackFailed {
			message = textUnpackFailed + " - " + message
		}
		w.one(unpackConditions, subscriptionBundleUnpackFailed, r.UnpackReason, message)
	case r.Unpacking:
		w.one(unpackConditions, subscriptionBundleUnpacking, reasonUnpackingInProgress, "")
	case r.Err == nil:
		w.one(unpackConditions, "", "", "")
	}
	if r.Plan != nil {
		for _, c := range r.Current {
			if c.Subscription == sub.Name && !w.progressing(c.CSV, r.Plan) {
				w.status.CurrentCSV = c.CSV
				w.status.State = olmapi.StateUpgradePending
				w.refer(r.Plan)
			}
		}
	}
	if r.Err == nil && w.status.CurrentCSV == "" && w.status.InstalledCSV != "" {
		// An update that was given up leads back to what is installed.
		w.status.CurrentCSV = w.status.InstalledCSV
		w.status.State = olmapi.StateAtLatestKnown
	}
	return w.finish(&sub.Status)
}

// Conditions of which a Subscription has one at most.
var (
	unpackConditions = []string{subscriptionBundleUnpacking, subscriptionBundleUnpackFailed}
	planConditions   = []string{subscriptionInstallPlanMissing, subscriptionInstallPlanPending, subscriptionInstallPlanFailed}
)

// statusWriter changes a copy of a status.
type statusWriter struct {
	status olmapi.SubscriptionStatus
	now    metav1.Time
}

func copyStatus(s *olmapi.SubscriptionStatus) olmapi.SubscriptionStatus {
	out := *s
	out.Conditions = slices.Clone(s.Conditions)
	out.CatalogHealth = slices.Clone(s.CatalogHealth)
	return out
}

// finish says when the status changed last, if it did.
func (w *statusWriter) finish(before *olmapi.SubscriptionStatus) olmapi.SubscriptionStatus {
	if !equalStatus(before, &w.status) {
		w.status.LastUpdated = w.now
	}
	return w.status
}

// adoptPlan gives a Subscription that an InstallPlan created its first status.
func (w *statusWriter) adoptPlan(sub *olmapi.Subscription, plans []olmapi.InstallPlan) {
	name := sub.Annotations[annotationGeneratedBy]
	if name == "" || w.status.InstallPlanRef != nil || w.status.InstallPlan != nil {
		return
	}
	plan := findPlan(plans, name)
	if plan == nil || w.status.InstalledCSV != "" {
		return
	}
	w.refer(plan)
	w.status.State = olmapi.StateUpgradePending
	w.status.CurrentCSV = sub.Spec.StartingCSV
}

// adoptOperator gives a Subscription without a status the operator of its package
// that is there and has no Subscription: one whose Subscription was deleted and
// made again. Of several it takes none.
func (w *statusWriter) adoptOperator(sub *olmapi.Subscription, s *olm.Snapshot) {
	if w.status.CurrentCSV != "" || w.status.InstalledCSV != "" || w.status.InstallPlanRef != nil {
		return
	}
	var found []string
	for _, csv := range unclaimedCSVs(s) {
		if isOfPackage(csv, sub, s.Catalogs) {
			found = append(found, csv.Name)
		}
	}
	if len(found) == 1 {
		w.status.CurrentCSV = found[0]
	}
}

// isOfPackage reports whether an operator is of the package of a Subscription: by
// its properties, or because the package has a bundle of its name in a catalog
// that the Subscription names.
func isOfPackage(csv *olmapi.ClusterServiceVersion, sub *olmapi.Subscription, catalogs []olm.SnapshotCatalog) bool {
	var list struct {
		Properties []struct {
			Type  string `json:"type"`
			Value struct {
				PackageName string `json:"packageName"`
			} `json:"value"`
		} `json:"properties"`
	}
	// An error is about values of other properties, which have other forms.
	_ = json.Unmarshal([]byte(csv.Annotations[olmapi.AnnotationProperties]), &list)
	for _, p := range list.Properties {
		if p.Type == olm.PropertyPackage && p.Value.PackageName == sub.Spec.Package {
			return true
		}
	}
	return slices.ContainsFunc(catalogs, func(c olm.SnapshotCatalog) bool {
		if c.Contents == nil || !sub.Spec.Takes(c.Key) {
			return false
		}
		p := c.Contents.Package(sub.Spec.Package)
		return p != nil && p.Bundle(csv.Name) != nil
	})
}

// progressing reports whether the status has this operator and plan already. Its
// state is then a matter of how the plan goes.
func (w *statusWriter) progressing(csv string, plan *olmapi.InstallPlan) bool {
	ref := w.status.InstallPlanRef
	return w.status.CurrentCSV == csv && ref != nil && ref.Name == plan.Name && ref.UID == plan.UID
}

// refer makes the status name a plan. A reference that names it already stays
// as it is.
func (w *statusWriter) refer(plan *olmapi.InstallPlan) {
	ref := w.status.InstallPlanRef
	same := ref != nil && ref.Name == plan.Name && ref.UID == plan.UID
	if same && w.status.InstallPlanGeneration == plan.Spec.Generation {
		return
	}
	apiVersion, kind := plan.APIKind().ToAPIVersionAndKind()
	w.status.InstallPlanRef = &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: plan.Namespace, Name: plan.Name, UID: plan.UID,
	}
	w.status.InstallPlan = &olmapi.InstallPlanReference{
		APIVersion: apiVersion, Kind: kind, Name: plan.Name, UUID: string(plan.UID),
	}
	w.status.InstallPlanGeneration = plan.Spec.Generation
}

// planConditions sets the conditions that speak of the InstallPlan. One that
// is gone or superseded before it was carried out is forgotten, so that a
// resolution makes another.
func (w *statusWriter) plan(s *State) {
	typ, reason, message := "", "", ""
	if ref := w.status.InstallPlanRef; ref != nil {
		plan := findPlan(s.Plans, ref.Name)
		over := plan == nil || superseded(plan)
		switch {
		case over && w.status.State == olmapi.StateUpgradePending && !isThere(s.Snapshot, w.status.CurrentCSV):
			w.status.InstallPlanRef, w.status.InstallPlan = nil, nil
			w.status.CurrentCSV = ""
			w.status.State = olmapi.StateNone
		case plan == nil:
			typ, reason = subscriptionInstallPlanMissing, reasonReferencedPlanNotFound
		case over || plan.Status.Phase == olmapi.PlanPhaseComplete:
		case plan.Status.Phase == olmapi.PlanPhaseFailed:
			typ, reason = subscriptionInstallPlanFailed, reasonInstallPlanFailed
			if c := installedCondition(plan); c != nil && c.Reason != "" {
				reason, message = c.Reason, c.Message
			}
		default:
			typ, reason = subscriptionInstallPlanPending, cmp.Or(string(plan.Status.Phase), reasonInstallPlanNotReconciled)
			if c := installedCondition(plan); c != nil && c.Status == corev1.ConditionFalse {
				message = c.Message // why it waits
			}
		}
	}
	w.one(planConditions, typ, reason, message)
}

// csvState reports whether the operator that the Subscription progresses to is
// there.
func (w *statusWriter) csvState(s *State) {
	current := w.status.CurrentCSV
	if current == "" {
		return
	}
	if isThere(s.Snapshot, current) {
		w.status.State = olmapi.StateAtLatestKnown
		w.status.InstalledCSV = current
		return
	}
	w.status.State = olmapi.StateUpgradePending
	if w.status.InstallPlanRef == nil {
		return
	}
	plan := findPlan(s.Plans, w.status.InstallPlanRef.Name)
	forward, err := s.Snapshot.FailsForward()
	if forward && err == nil && plan != nil && plan.Status.Phase == olmapi.PlanPhaseFailed {
		w.status.State = olmapi.StateUpgradeFailed
	}
}

func isThere(s *olm.Snapshot, csv string) bool {
	return slices.ContainsFunc(s.Installed, func(c olmapi.ClusterServiceVersion) bool {
		return c.Name == csv && objects.Belongs(c.Namespace, s.Namespace) && !c.IsCopied()
	})
}

func findPlan(plans []olmapi.InstallPlan, name string) *olmapi.InstallPlan {
	for i := range plans {
		if plans[i].Name == name {
			return &plans[i]
		}
	}
	return nil
}

// resolution sets condition ResolutionFailed.
func (w *statusWriter) resolution(sub *olmapi.Subscription, r *resolution) {
	held, ok := r.HeldBack[sub.Name]
	switch {
	case r.Err != nil:
		w.set(subscriptionResolutionFailed, corev1.ConditionTrue, resolutionReason(r.Err), r.Err.Error())
	case ok:
		w.set(subscriptionResolutionFailed, corev1.ConditionTrue, held.reason, held.text)
	default:
		w.remove(subscriptionResolutionFailed)
	}
}

// heldBack is why a Subscription gets nothing new: the reason and the message of
// its condition.
type heldBack struct{ reason, text string }

// explained is how many options a condition explains: the best ones.
const explained = 3

// heldBackBy explains the Subscriptions of a generation that get nothing new. An
// explanation that fails leaves the rest.
func heldBackBy(ctx context.Context, g *olm.Generation) map[string]heldBack {
	out := map[string]heldBack{}
	var held []*olm.HeldBack
	for _, h := range g.HeldBack {
		taken := func(op olm.Operator) bool { return op.Name == h.Taken }
		switch {
		case h.Subscription == "" || slices.ContainsFunc(g.Operators, taken):
		case h.Err != nil:
			out[h.Subscription] = heldBack{resolutionReason(h.Err), h.Err.Error()}
		default:
			h.NotTaken = h.NotTaken[:min(len(h.NotTaken), explained)]
			held = append(held, &h)
		}
	}
	why, err := g.Why(ctx, held...)
	for i, h := range held {
		e := &olm.Explanation{Text: h.String()}
		if err == nil {
			e = why[i]
		} else {
			e.Children = []*olm.Explanation{{Text: err.Error()}}
		}
		out[h.Subscription] = heldBack{reasonConstraintsNotSatisfiable, e.Line()}
	}
	return out
}

// resolutionReason is the reason of an error that is terminal until the input
// changes, or of one that kept the question from being answered.
func resolutionReason(err error) string {
	var unsatisfiable *olm.NotSatisfiable
	var fact *olm.Fact
	if errors.As(err, &unsatisfiable) || errors.As(err, &fact) {
		return reasonConstraintsNotSatisfiable
	}
	return reasonErrorPreventedResolution
}

// maxMessage is the most bytes of a text in a status: what catalogs and
// explanations have to say can be longer than an object may be.
const maxMessage = 32 << 10

// set sets a condition.
func (w *statusWriter) set(typ string, status corev1.ConditionStatus, reason, message string) {
	now := w.now
	w.status.Conditions = withCondition(w.status.Conditions, olmapi.Condition{
		Type: typ, Status: status, Reason: reason, Message: bounded.Text(message, maxMessage), LastTransitionTime: &now,
	})
}

// one makes a condition true, and removes the rest of the group. An empty typ
// removes them all.
func (w *statusWriter) one(group []string, typ, reason, message string) {
	for _, other := range group {
		if other != typ {
			w.remove(other)
		}
	}
	if typ != "" {
		w.set(typ, corev1.ConditionTrue, reason, message)
	}
}

func (w *statusWriter) remove(typ string) {
	w.status.Conditions = slices.DeleteFunc(w.status.Conditions, func(c olmapi.Condition) bool {
		return c.Type == typ
	})
}

// findCondition returns the condition of a type; nil if absent.
func findCondition(all []olmapi.Condition, typ string) *olmapi.Condition {
	i := slices.IndexFunc(all, func(c olmapi.Condition) bool { return c.Type == typ })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// withCondition returns conditions with c added, or in place of the one of its
// type. The time of transition moves with the status alone, and a condition that
// says the same stays as it is. The argument may be shared, and is not changed.
func withCondition(all []olmapi.Condition, c olmapi.Condition) []olmapi.Condition {
	all = slices.Clone(all)
	old := findCondition(all, c.Type)
	switch {
	case old == nil:
		return append(all, c)
	case old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message:
		return all
	case old.Status == c.Status:
		c.LastTransitionTime = old.LastTransitionTime
	}
	c.LastHeartbeatTime = old.LastHeartbeatTime
	*old = c
	return all
}

// equalStatus reports whether two statuses say the same, the time of the last
// change aside.
func equalStatus(a, b *olmapi.SubscriptionStatus) bool {
	x, y := *a, *b
	y.LastUpdated = x.LastUpdated
	return equality.Semantic.DeepEqual(&x, &y)
}
