package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// annotationOpen of the ClusterVersion reports which upgrade may have extra
// capacity or maintenance windows open. It is JSON with a format number, stored
// before the first of them is opened and removed when all are closed. So a
// [Controller] closes them too if the UpgradeConfig is deleted or replaced
// meanwhile.
const annotationOpen = clusterapi.AnnotationPrefix + "upgrade-open"

const openFormat = 1

// openUpgrade is the value of annotationOpen: the UpgradeConfig as hooks need it.
type openUpgrade struct {
	Format    int                `json:"format"`
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	UID       types.UID          `json:"uid"`
	Spec      upgradeconfig.Spec `json:"spec"`
	StartTime *metav1.Time       `json:"startTime,omitempty"`
	// At is when a process wrote it. Each one writes it again, since what it has read
	// may be old.
	At metav1.MicroTime `json:"at"`
}

// openOf reads the annotation; nil if absent.
func openOf(cv *configv1.ClusterVersion) (*openUpgrade, error) {
	text, ok := cv.Annotations[annotationOpen]
	if !ok {
		return nil, nil
	}
	open := &openUpgrade{}
	if err := json.Unmarshal([]byte(text), open); err != nil {
		return nil, fmt.Errorf("annotation %s of the ClusterVersion: %w", annotationOpen, err)
	}
	if open.Format > openFormat {
		return nil, fmt.Errorf("annotation %s of the ClusterVersion has format %d; this program reads formats up to %d", annotationOpen, open.Format, openFormat)
	}
	return open, nil
}

// config is the UpgradeConfig as it was.
func (o *openUpgrade) config() *upgradeconfig.UpgradeConfig {
	c := &upgradeconfig.UpgradeConfig{Spec: o.Spec}
	c.Namespace, c.Name, c.UID = o.Namespace, o.Name, o.UID
	c.Status.SetEntry(upgradeconfig.HistoryEntry{Version: o.Spec.Desired.Version, Phase: upgradeconfig.PhaseUpgrading, StartTime: o.StartTime})
	return c
}

// isOf reports whether an UpgradeConfig is still at the upgrade.
func (o *openUpgrade) isOf(c *upgradeconfig.UpgradeConfig) bool {
	return c != nil && c.DeletionTimestamp == nil && c.UID == o.UID && c.Spec.Desired.Version == o.Spec.Desired.Version &&
		c.Status.Phase(c.Spec.Desired.Version) == upgradeconfig.PhaseUpgrading
}

// upgradeID names an upgrade.
type upgradeID struct {
	uid     types.UID
	version string
}

func (p *pass) id() upgradeID { return upgradeID{p.config.UID, p.entry.Version} }

// noteOpen stores that the upgrade is about to open something, once in each
// process.
func (p *pass) noteOpen(ctx context.Context) error {
	id := p.id()
	if p.c.open == id {
		return nil
	}
	data, err := json.Marshal(openUpgrade{
		Format: openFormat, Namespace: p.config.Namespace, Name: p.config.Name, UID: id.uid, Spec: p.config.Spec, StartTime: p.entry.StartTime,
		At: metav1.NewMicroTime(p.c.now().UTC()),
	})
	if err != nil {
		return err
	}
	err = p.modify(ctx, func(cv *configv1.ClusterVersion) (bool, error) {
		other, err := openOf(cv)
		if err != nil {
			return false, err
		}
		if other != nil && (other.UID != id.uid || other.Spec.Desired.Version != id.version) {
			return false, loop.ErrChanged
		}
		if cv.Annotations == nil {
			cv.Annotations = make(map[string]string)
		}
		cv.Annotations[annotationOpen] = string(data)
		return false, nil
	})
	if err == nil {
		p.c.open = id
	}
	return err
}

// noteClosed removes the annotation that was read.
func (c *Controller) noteClosed(ctx context.Context, read *configv1.ClusterVersion) error {
	text, ok := read.Annotations[annotationOpen]
	if !ok {
		return nil
	}
	c.open = upgradeID{}
	_, err := clusterversion.Modify(ctx, c.o.API, clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerPolicy}, func(cv *configv1.ClusterVersion) (bool, error) {
		if cv.Annotations[annotationOpen] != text {
			return false, loop.ErrChanged
		}
		delete(cv.Annotations, annotationOpen)
		return false, nil
	})
	return err
}

// closeAll closes whatever an upgrade may have opened, and reports whether all of
// it is closed. One hook that fails does not keep the others from being called.
func (c *Controller) closeAll(ctx context.Context, config *upgradeconfig.UpgradeConfig) (closed bool, err error) {
	closed = true
	var errs []error
	if c.o.Capacity != nil {
		errs = append(errs, panics.Catch(func() (err error) {
			closed, err = c.o.Capacity.Release(ctx, config)
			return err
		}))
	}
	if c.o.Maintenance != nil {
		for _, plane := range []Plane{ControlPlane, Workers} {
			errs = append(errs, panics.Catch(func() error { return c.o.Maintenance.End(ctx, config, plane) }))
		}
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	err = errors.Join(errs...)
	return closed && err == nil, err
}

// errClosing is why an upgrade waits.
var errClosing = errors.New("extra capacity is still being removed")

// closeLeft closes what an upgrade opened that did not come to its end: current,
// which is nil if absent, is not at it any more. An error reports what is still
// open.
func (c *Controller) closeLeft(ctx context.Context, cv *configv1.ClusterVersion, current *upgradeconfig.UpgradeConfig) error {
	open, err := openOf(cv)
	if err != nil || open == nil || open.isOf(current) {
		return err
	}
	version := open.Spec.Desired.Version
	closed, err := c.closeAll(ctx, open.config())
	if err == nil && !closed {
		err = errClosing
	}
	if err == nil {
		err = c.noteClosed(ctx, cv)
	}
	if err != nil {
		return fmt.Errorf("closing what the upgrade to %s opened: %w", version, err)
	}
	text := fmt.Sprintf("what the upgrade to %s left open is closed", version)
	c.o.Logger.Info(text)
	c.emit(clusterapi.Event{Type: upgradeconfig.EventClosed, Message: text}, upgradeconfig.EventData{Version: version})
	return nil
}

// closeWithout is the pass of a cluster that has no UpgradeConfig.
func (c *Controller) closeWithout(ctx context.Context) (Progress, error) {
	cv, err := clusterversion.Get(ctx, c.o.API)
	if clusterapi.IsMissing(err) {
		return Progress{After: longWait, Reason: noConfig}, nil
	}
	if err == nil {
		err = c.closeLeft(ctx, cv, nil)
	} else {
		err = fmt.Errorf("%w: %w", upgradeconfig.ErrClusterVersion, err)
	}
	if err != nil {
		return Progress{After: shortWait, Reason: noConfig}, err
	}
	return Progress{After: longWait, Reason: noConfig}, nil
}
