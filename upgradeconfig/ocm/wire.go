package ocm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// The documents of OCM, as far as they matter here. OCM adds keys at will, so
// unknown ones are ignored. What may be wrong with one policy and must not
// spoil the others stays raw until that policy's turn.

// decode is case-sensitive and refuses what can be read in two ways, octets
// that are not UTF-8 among it: JSON readers disagree on what these stand for.
func decode(body []byte, a answer) error {
	if !utf8.Valid(body) {
		return errors.New("it is not valid UTF-8")
	}
	if err := limit.JSON(body, a); err != nil {
		return err
	}
	twice, err := kjson.UnmarshalStrict(body, a, kjson.DisallowDuplicateFields)
	if err != nil {
		return err
	}
	return bounded.Errors(append(twice, a.check())...)
}

type wireError struct {
	Kind        string `json:"kind"`
	Code        string `json:"code"`
	Reason      string `json:"reason"`
	OperationID string `json:"operation_id"`
}

func (*wireError) check() error { return nil }

// The kinds of the documents that are read.
const (
	kindCluster        = "Cluster"
	kindClusters       = "ClusterList"
	kindPolicy         = "UpgradePolicy"
	kindPolicies       = "UpgradePolicyList"
	kindHostedPolicy   = "ControlPlaneUpgradePolicy"
	kindHostedPolicies = "ControlPlaneUpgradePolicyList"
	kindState          = "UpgradePolicyState"
)

// isError catches an error that comes with status 200.
func isError(kind string) error {
	if kind == "Error" {
		return errors.New("it is an error")
	}
	return nil
}

// checkKind is isError, and catches a document that is about something else.
// Not every document says its kind.
func checkKind(kind string, want ...string) error {
	if kind != "" && kind != "Error" && !slices.Contains(want, kind) {
		return fmt.Errorf("its kind is %q, not %s", kind, strings.Join(want, " or "))
	}
	return isError(kind)
}

// wireList is a page of clusters or policies.
type wireList struct {
	want  string            // the kind that was asked for
	Kind  string            `json:"kind"`
	Total *int64            `json:"total"`
	Items []json.RawMessage `json:"items"`
}

func (l *wireList) check() error {
	switch {
	case checkKind(l.Kind, l.want) != nil:
		return checkKind(l.Kind, l.want)
	case l.Total == nil:
		return errors.New("it has no total, so it is not a list")
	case *l.Total < 0:
		return fmt.Errorf("its total is %d", *l.Total)
	case *l.Total == 0 && len(l.Items) > 0:
		return fmt.Errorf("its total is 0, but it has %d items", len(l.Items))
	case *l.Total == 0 && l.Kind == "":
		// An empty list deletes the UpgradeConfig, so it has to say what it lists,
		// as those of OCM do.
		return fmt.Errorf("it is empty and has no kind, so it is not known to be a %s", l.want)
	}
	return nil
}

type wireCluster struct {
	Kind       string `json:"kind"`
	ID         string `json:"id"`
	ExternalID string `json:"external_id"`
	Version    struct {
		ChannelGroup string `json:"channel_group"`
	} `json:"version"`
	DrainGracePeriod json.RawMessage `json:"node_drain_grace_period"`
	Hypershift       struct {
		Enabled bool `json:"enabled"`
	} `json:"hypershift"`
}

// check leaves the kind to cluster, for which another is not a cluster ID.
func (c *wireCluster) check() error { return isError(c.Kind) }

type wirePeriod struct {
	Value json.Number `json:"value"`
	Unit  string      `json:"unit"`
}

func (*wirePeriod) check() error { return nil }

type wirePolicy struct {
	Kind                string          `json:"kind"`
	ID                  string          `json:"id"`
	ClusterID           string          `json:"cluster_id"`
	ScheduleType        string          `json:"schedule_type"` // manual or automatic
	UpgradeType         string          `json:"upgrade_type"`
	Version             string          `json:"version"`
	NextRun             json.RawMessage `json:"next_run"`
	CapacityReservation json.RawMessage `json:"capacity_reservation"`
	State               json.RawMessage `json:"state"` // of hosted control planes
}

func (p *wirePolicy) check() error { return checkKind(p.Kind, kindPolicy, kindHostedPolicy) }

type wireState struct {
	Kind        string  `json:"kind"`
	Value       *string `json:"value"`
	Description string  `json:"description"`
}

func (s *wireState) check() error {
	if s.Value == nil && s.Kind != "Error" {
		return errors.New("it has no value, so it is not a state")
	}
	return checkKind(s.Kind, kindState)
}

// given reports whether a raw value is there at all.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
