package nodeaction

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Every run takes a node from one ConfigMap before it touches it, and gives it
// back when it is finished. One object that is written on condition of what was
// read decides, so two runs never take two nodes of the control plane, however
// late their views of the nodes are.
const (
	// configMapName is the ConfigMap that says which nodes are being acted on.
	configMapName = "clusterupdate-node-actions"
	// defaultNamespace is where it is.
	defaultNamespace = "openshift-config"

	claimsKey     = "claims"
	claimsVersion = 1
)

// claim is a node that is taken by a run.
type claim struct {
	Node         string `json:"node"`
	Run          string `json:"run"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
}

type claims struct {
	Version int     `json:"version"`
	Claims  []claim `json:"claims"`
	// Holders are the programs that work on runs, by the run's ID: a name unique
	// to each start. The latest one holds it.
	Holders map[string]string `json:"holders"`
	Checks  int               `json:"checks,omitempty"`
}

func readClaims(m *corev1.ConfigMap) (claims, error) {
	c := claims{Version: claimsVersion, Holders: map[string]string{}}
	value := m.Data[claimsKey]
	if value == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(value), &c); err != nil {
		return c, fmt.Errorf("ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
	}
	if c.Version > claimsVersion {
		return c, fmt.Errorf("ConfigMap %s/%s: %w: version %d; this program knows 1 to %d", m.Namespace, m.Name, ErrVersion, c.Version, claimsVersion)
	}
	if c.Holders == nil {
		c.Holders = map[string]string{}
	}
	return c, nil
}

// changeClaims changes the claims on condition that they are as read, and returns
// them.
func changeClaims(ctx context.Context, api clusterapi.ReadWriter, namespace string, change func(*claims) error) (claims, error) {
	var all claims
	apply := func(m *corev1.ConfigMap) error {
		var err error
		all, err = readClaims(m)
		if err != nil {
			return err
		}
		err = change(&all)
		if err != nil {
			return err
		}
		value, err := json.Marshal(all)
		if err != nil {
			return err
		}
		m.Data = map[string]string{claimsKey: string(value)}
		return nil
	}
	_, err := clusterapi.Modify(ctx, api, clusterapi.Key(namespace, configMapName), modify, apply)
	if !apierrors.IsNotFound(err) {
		return all, err
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = namespace, configMapName
	if err := apply(m); err != nil {
		return claims{}, err
	}
	_, err = clusterapi.Create(ctx, api, m, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerRollout})
	return all, err
}

// changeOurs changes the claims, and makes the run this program's at first. It
// fails with ErrTakenOver where it is another one's by now.
func (r *reconciler) changeOurs(ctx context.Context, change func(*claims) error) (claims, error) {
	lost := false
	all, err := changeClaims(ctx, r.api, r.Namespace, func(c *claims) error {
		if !r.held {
			c.Holders[r.ID] = r.holder
		}
		lost = c.Holders[r.ID] != r.holder
		if lost {
			c.Checks++ // what was read may be of the past: a write that succeeds shows that it is not
			return nil
		}
		return change(c)
	})
	if err == nil && lost {
		err = ErrTakenOver
	}
	return all, err
}

// unchanged changes nothing.
func unchanged(*claims) error { return nil }

// ofRun returns the claims of a run.
func ofRun(all []claim, run string) []claim {
	return slices.DeleteFunc(slices.Clone(all), func(c claim) bool { return c.Run != run })
}
