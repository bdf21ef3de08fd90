package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// annotationSent of an UpgradeConfig is where a [Controller] keeps the
// notifications that have no condition of the upgrade: delays, extra capacity
// that is not available, failed health checks, and the service logs that could not
// be posted. It is JSON with a format number: which notifications are due and which
// were sent, of which object and version. When the upgrade has ended, service logs
// of its steps are still sent, and all else that is due is not.
//
// All further notifications have a condition, which is False while they are due
// and True once they were sent. It is stored together with the phase; an
// annotation could not be, since status is a subresource.
const annotationSent = clusterapi.AnnotationPrefix + "told"

const recordFormat = 1

// record is the value of annotationSent.
type record struct {
	Format  int                   `json:"format"`
	UID     types.UID             `json:"uid"`
	Version string                `json:"version"`
	Due     []upgradeconfig.State `json:"due,omitempty"`
	Sent    []upgradeconfig.State `json:"told,omitempty"`
}

// recordOf reads the record of the upgrade that c asks for. One that is about
// another upgrade, or cannot be read, counts as none; one of a newer format is an
// error.
func recordOf(c *upgradeconfig.UpgradeConfig) (record, error) {
	var r record
	err := json.Unmarshal([]byte(c.Annotations[annotationSent]), &r)
	if r.Format > recordFormat {
		return r, fmt.Errorf("annotation %s has format %d; this program reads formats up to %d", annotationSent, r.Format, recordFormat)
	}
	if err != nil || r.UID != c.UID || r.Version != c.Spec.Desired.Version {
		r = record{}
	}
	return r, nil
}

// storeRecord stores a record, on condition that the stored one is the one that the
// pass knows; an empty one removes the annotation.
func (p *pass) storeRecord(ctx context.Context, r record) error {
	was := p.config.Annotations[annotationSent]
	text := ""
	if len(r.Due)+len(r.Sent) > 0 {
		r.Format, r.UID, r.Version = recordFormat, p.config.UID, p.config.Spec.Desired.Version
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		text = string(data)
	}
	if text == was {
		return nil
	}
	stored, err := clusterapi.Modify(ctx, p.c.o.API, p.c.key(), clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerPolicy}, func(c *upgradeconfig.UpgradeConfig) error {
		if !p.same(c) || c.Annotations[annotationSent] != was {
			return loop.ErrChanged
		}
		if text == "" {
			delete(c.Annotations, annotationSent)
			return nil
		}
		if c.Annotations == nil {
			c.Annotations = make(map[string]string)
		}
		c.Annotations[annotationSent] = text
		return nil
	})
	if err == nil {
		p.config.Annotations, p.record = stored.Annotations, r
	}
	return err
}

// notifyOnce sends, once, a notification that has no condition.
func (p *pass) notifyOnce(ctx context.Context, s upgradeconfig.State, found []string) error {
	if slices.Contains(p.record.Sent, s) || p.isSilent(s) {
		return nil
	}
	r := p.record
	if !slices.Contains(r.Due, s) {
		r.Due = append(slices.Clone(r.Due), s)
		if err := p.storeRecord(ctx, r); err != nil {
			return err
		}
	}
	if err := p.notify(ctx, s, found); err != nil {
		return err
	}
	r.Due = slices.DeleteFunc(slices.Clone(r.Due), func(d upgradeconfig.State) bool { return d == s })
	r.Sent = append(slices.Clone(r.Sent), s)
	return p.storeRecord(ctx, r)
}

// logged posts a service log of a step. The step does not wait for it: what cannot
// be posted is due, and posted later.
func (p *pass) logged(ctx context.Context, s upgradeconfig.State) (bool, error) {
	if slices.Contains(p.record.Due, s) {
		return true, nil
	}
	err := panics.Catch(func() error { return p.notify(ctx, s, nil) })
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil {
		return true, nil
	}
	p.log(err)
	r := p.record
	r.Due = append(slices.Clone(r.Due), s)
	err = p.storeRecord(ctx, r)
	return err == nil, err
}

// sendLogs posts the service logs that are still due after the end of the upgrade.
// All else that is stored is about its course, and is removed.
func (p *pass) sendLogs(ctx context.Context) error {
	var left record
	for _, s := range p.record.Due {
		if !isStepLog(s) {
			continue
		}
		err := panics.Catch(func() error { return p.notify(ctx, s, nil) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.log(err)
			left.Due = append(left.Due, s)
		}
	}
	return p.storeRecord(ctx, left)
}

// isStepLog reports whether a state makes a service log of a step. What others say
// is known to the check that found it.
func isStepLog(s upgradeconfig.State) bool {
	switch s {
	case upgradeconfig.StateControlPlaneStartedSL, upgradeconfig.StateControlPlaneFinishedSL, upgradeconfig.StateWorkerPlaneFinishedSL:
		return true
	}
	return false
}

// notifyDue sends what earlier passes have left, and notifies of a delay. Service
// logs of health checks are left to the step that knows what to write into them.
func (p *pass) notifyDue(ctx context.Context, delayed bool) error {
	due := slices.DeleteFunc(slices.Clone(p.record.Due), func(s upgradeconfig.State) bool { return s.ServiceLog() && !isStepLog(s) })
	if delayed && !slices.Contains(due, upgradeconfig.StateDelayed) {
		due = append(due, upgradeconfig.StateDelayed)
	}
	var late error
	for _, s := range due {
		if err := p.notifyOnce(ctx, s, nil); s == upgradeconfig.StateDelayed {
			late = err
		} else {
			p.log(err) // the step under way fails, if anything does
		}
	}
	return late
}

// isSilent reports whether a state is never reported: service logs if they are off.
func (p *pass) isSilent(s upgradeconfig.State) bool { return s.ServiceLog() && !p.serviceLogs }

// sentStates are the states of an upgrade that a process has reported to the
// provider. They spare the provider the repetition if the cluster does not know
// yet, as a write failed.
type sentStates struct {
	of     upgradeID
	states []upgradeconfig.State
}

// notify sends a notification, unless this process has sent it.
func (p *pass) notify(ctx context.Context, s upgradeconfig.State, found []string) error {
	if p.c.sent.of != p.id() {
		p.c.sent = sentStates{of: p.id()}
	}
	if p.isSilent(s) || slices.Contains(p.c.sent.states, s) {
		return nil
	}
	config := *p.config
	config.Status = upgradeconfig.Status{}
	config.Status.SetEntry(p.entry)
	n := NewNotification(s, &config, found)
	err := p.c.o.Notifier.Notify(ctx, n)
	if err == nil {
		p.c.sent.states = append(p.c.sent.states, s)
	} else if prefix := fmt.Sprintf("can't send notification '%s': ", s); !strings.HasPrefix(err.Error(), prefix) {
		err = fmt.Errorf("%s%w", prefix, err)
	}
	p.c.emit(clusterapi.Event{Type: upgradeconfig.EventNotified, Err: err, Message: n.Description}, upgradeconfig.EventData{Version: n.Version, Notification: &n})
	return err
}

// log logs that a notification failed for which nothing waits.
func (p *pass) log(err error) {
	if err != nil {
		p.c.o.Logger.Warn("notification failed", "error", err)
	}
}

// Uninstall removes what a [Controller] keeps in a cluster for itself, after the last one
// has ended: an annotation of the UpgradeConfigs of all namespaces. Spec and status stay;
// the managed-upgrade operator uses them too. Where an object cannot be changed it
// continues with the rest; its error joins all errors. The annotation of the
// ClusterVersion about open capacity and windows is removed by a Controller that has closed
// what it speaks of, and is an error as long as it is there. A cluster that does not serve
// the kinds has nothing to remove.
func Uninstall(ctx context.Context, api clusterapi.ReadWriter) error {
	var errs []error
	cv, err := clusterversion.Get(ctx, api)
	switch {
	case err == nil && cv.Annotations[annotationOpen] != "":
		errs = append(errs, fmt.Errorf("ClusterVersion: annotation %s: extra capacity or maintenance windows may be open, and a Controller has to close them", annotationOpen))
	case err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
		errs = append(errs, err)
	}
	list, err := api.List(ctx, kind, clusterapi.ListOptions{})
	if meta.IsNoMatchError(err) {
		return errors.Join(errs...)
	}
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, u := range list.Items {
		if _, ok := u.GetAnnotations()[annotationSent]; !ok {
			continue
		}
		key := clusterapi.Key(u.GetNamespace(), u.GetName())
		_, err := clusterapi.Modify(ctx, api, key, clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerPolicy}, func(c *upgradeconfig.UpgradeConfig) error {
			delete(c.Annotations, annotationSent)
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("UpgradeConfig %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}
