package install

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// catalogsChange is the reason that names how the catalogs which a
// Subscription sees changed since its status was written; empty if they did
// not.
func catalogsChange(before, after []olmapi.CatalogHealth) string {
	switch {
	case len(after) > len(before):
		return reasonCatalogsAdded
	case len(after) < len(before):
		return reasonCatalogsDeleted
	}
	for i := range after {
		if after[i].Healthy != before[i].Healthy || healthKey(&after[i]) != healthKey(&before[i]) {
			return reasonCatalogsUpdated
		}
	}
	return ""
}

// catalogHealth lists the catalogs in sight, and reports whether all answer.
func (w *statusWriter) catalogHealth(sub *olmapi.Subscription, catalogs []olm.SnapshotCatalog) {
	health := make([]olmapi.CatalogHealth, 0, len(catalogs))
	for i := range catalogs {
		c := &catalogs[i]
		apiVersion, kind := (&olmapi.CatalogSource{}).APIKind().ToAPIVersionAndKind()
		health = append(health, olmapi.CatalogHealth{
			CatalogSourceRef: &corev1.ObjectReference{
				APIVersion: apiVersion, Kind: kind, Namespace: c.Key.Namespace, Name: c.Key.Name,
			},
			Healthy: c.Err == nil,
		})
	}
	slices.SortFunc(health, func(a, b olmapi.CatalogHealth) int {
		return strings.Compare(healthKey(&a).String(), healthKey(&b).String())
	})
	before := map[types.NamespacedName]olmapi.CatalogHealth{}
	for i := range w.status.CatalogHealth {
		before[healthKey(&w.status.CatalogHealth[i])] = w.status.CatalogHealth[i]
	}
	for i := range health {
		old, ok := before[healthKey(&health[i])]
		if ok && old.Healthy == health[i].Healthy && old.LastUpdated != nil {
			health[i] = old
		} else {
			now := w.now
			health[i].LastUpdated = &now
		}
	}
	reason := reasonAllCatalogsHealthy
	if len(before) > 0 {
		reason = cmp.Or(catalogsChange(w.status.CatalogHealth, health), reason)
	}
	w.status.CatalogHealth = health
	switch fault := catalogFault(sub, health); {
	case len(health) == 0:
		w.status.CatalogHealth = nil
		w.set(subscriptionCatalogsUnhealthy, corev1.ConditionTrue, reasonNoCatalogs, textNoCatalogs)
	case fault != "":
		w.set(subscriptionCatalogsUnhealthy, corev1.ConditionTrue, reasonUnhealthyCatalog, fault)
	default:
		w.set(subscriptionCatalogsUnhealthy, corev1.ConditionFalse, reason, textAllCatalogsHealthy)
	}
}

// catalogFault names the catalog that the Subscription lacks most: its own
// first.
func catalogFault(sub *olmapi.Subscription, health []olmapi.CatalogHealth) string {
	target := types.NamespacedName{Namespace: sub.Spec.SourceNamespace, Name: sub.Spec.Source}
	found, fault := target == types.NamespacedName{}, ""
	for i := range health {
		key := healthKey(&health[i])
		if key == target {
			found = true
			if !health[i].Healthy {
				return fmt.Sprintf("targeted catalogsource %s unhealthy", key)
			}
		}
		if !health[i].Healthy && fault == "" {
			fault = fmt.Sprintf("catalogsource %s unhealthy", key)
		}
	}
	if !found {
		return fmt.Sprintf("targeted catalogsource %s missing", target)
	}
	return fault
}

func healthKey(h *olmapi.CatalogHealth) types.NamespacedName {
	if h.CatalogSourceRef == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: h.CatalogSourceRef.Namespace, Name: h.CatalogSourceRef.Name}
}

// deprecations records whether the catalog calls the installed bundle, its channel
// or its package deprecated. A catalog that cannot be read leaves the conditions as
// they are.
func (w *statusWriter) deprecations(sub *olmapi.Subscription, catalogs []olm.SnapshotCatalog) {
	entry, known := installedEntry(sub, w.status.InstalledCSV, catalogs)
	if !known {
		return
	}
	var rollUp []string
	note := func(condition, schema, name, message string) {
		if message == "" {
			w.remove(condition)
			return
		}
		if schema != "" {
			message = fmt.Sprintf("%s/%s: %s", schema, name, message)
			rollUp = append(rollUp, message)
		}
		w.set(condition, corev1.ConditionTrue, "", message)
	}
	if entry == nil {
		entry = &olm.Entry{Package: &olm.Package{}, Channel: &olm.Channel{}, Bundle: &olm.Bundle{}}
	}
	channel := entry.Channel
	if sub.Spec.Channel == "" {
		channel = &olm.Channel{}
	}
	note(subscriptionPackageDeprecated, "olm.package", entry.Package.Name, entry.Package.Deprecation)
	note(subscriptionChannelDeprecated, "olm.channel", channel.Name, channel.Deprecation)
	note(subscriptionBundleDeprecated, "olm.bundle", entry.Name, entry.Bundle.Deprecation)
	note(subscriptionDeprecated, "", "", strings.Join(rollUp, "; "))
}

// installedEntry finds the installed operator in what the Subscription names.
// known is false if a catalog that matters cannot be read.
func installedEntry(
	sub *olmapi.Subscription, installed string, catalogs []olm.SnapshotCatalog,
) (entry *olm.Entry, known bool) {
	if installed == "" {
		return nil, true
	}
	known = true
	for i := range catalogs {
		c := &catalogs[i]
		if !sub.Spec.Takes(c.Key) {
			continue
		}
		if c.Err != nil || c.Contents == nil {
			known = false
			continue
		}
		p := c.Contents.Package(sub.Spec.Package)
		if p == nil {
			continue
		}
		for _, ch := range p.Channels {
			if sub.Spec.Channel != "" && ch.Name != sub.Spec.Channel {
				continue
			}
			if e := ch.Entry(installed); e != nil && e.Bundle != nil {
				return e, true
			}
		}
	}
	return nil, known
}
