package upgradeconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// How long a deleted object may take to go, and how often to look.
const (
	deletionPoll    = 5 * time.Second
	deletionTimeout = 60 * time.Second
)

// act does what was decided about current. If current is not what is stored, it
// writes nothing and the error is loop.ErrChanged.
func (m *Manager) act(ctx context.Context, current *UpgradeConfig, a Action) error {
	switch a.Kind {
	case EventCreated:
		err := m.create(ctx, a.Spec)
		if apierrors.IsAlreadyExists(err) {
			err = fmt.Errorf("%w: %w", loop.ErrChanged, err)
		}
		return err
	case EventUpdated:
		return m.update(ctx, current, a.Spec)
	case EventDeleted:
		return m.remove(ctx, current)
	case EventReplaced:
		if err := m.remove(ctx, current); err != nil {
			return err
		}
		if err := m.awaitGone(ctx, current); err != nil {
			return fmt.Errorf("%w: %w", ErrConfirmDeletion, err)
		}
		return m.create(ctx, a.Spec)
	}
	return nil
}

// create makes a new object, with nothing of an old one.
func (m *Manager) create(ctx context.Context, spec Spec) error {
	c := &UpgradeConfig{Spec: spec}
	c.Name, c.Namespace = m.o.Name, m.o.Namespace
	_, err := clusterapi.Create(ctx, m.o.API, c, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerPolicy})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrApply, err)
	}
	return nil
}

// update changes the fields that can be changed in place.
func (m *Manager) update(ctx context.Context, current *UpgradeConfig, spec Spec) error {
	o := clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerPolicy, Once: true}
	_, err := clusterapi.Modify(ctx, m.o.API, m.key(), o, func(c *UpgradeConfig) error {
		if c.UID != current.UID || c.ResourceVersion != current.ResourceVersion {
			return loop.ErrChanged
		}
		c.Spec = spec
		return nil
	})
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		err = fmt.Errorf("%w: %w", loop.ErrChanged, err)
	}
	return fmt.Errorf("%w: %w", ErrApply, err)
}

// remove deletes the object as it was read. The condition on its
// resourceVersion is what protects an upgrade that began since: taking an
// upgrade up changes the object's status. A custom resource has no grace period
// that would have to be set to 0.
func (m *Manager) remove(ctx context.Context, current *UpgradeConfig) error {
	if current.DeletionTimestamp != nil {
		return nil // its deletion has begun
	}
	err := m.o.API.Delete(ctx, gvk, m.key(), clusterapi.DeleteOptions{UID: current.UID, ResourceVersion: current.ResourceVersion})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		err = fmt.Errorf("%w: %w", loop.ErrChanged, err)
	}
	return fmt.Errorf("%w: %w", ErrRemove, err)
}

// awaitGone waits until the object has gone.
func (m *Manager) awaitGone(ctx context.Context, old *UpgradeConfig) error {
	for left := deletionTimeout; ; left -= deletionPoll {
		stored, err := m.o.API.Get(ctx, gvk, m.key())
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case stored.GetUID() != old.UID:
			return errors.New("somebody else created another one")
		}
		if left <= 0 {
			return fmt.Errorf("it is still there after %s; finalizers: %v", deletionTimeout, stored.GetFinalizers())
		}
		if err := reconcile.Sleep(ctx, min(deletionPoll, left)); err != nil {
			return err
		}
	}
}
