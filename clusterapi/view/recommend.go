package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// Recommend is what oc adm upgrade recommend shows of a cluster: what speaks
// against an update now, and the releases with their known issues. It is plain
// data.
type Recommend struct {
	Version string `json:"version"` // the release that the cluster runs or updates to
	// The conditions that matter, nil where the ClusterVersion has none of the
	// type.
	Failing          *Condition `json:"failing,omitempty"`
	Progressing      *Condition `json:"progressing,omitempty"`
	RetrievedUpdates *Condition `json:"retrievedUpdates,omitempty"`
	Upgradeable      *Condition `json:"upgradeable,omitempty"`
	// UpgradeableError explains why Upgradeable=False could not be made a risk of
	// releases.
	UpgradeableError string `json:"upgradeableError,omitempty"`
	// Prechecks are the findings of all checks, and PrecheckErrors say which
	// could not be made.
	Prechecks      []PrecheckCondition `json:"prechecks"`
	PrecheckErrors []string            `json:"precheckErrors,omitempty"`
	Channel        Channel             `json:"channel"`
	// Groups are the releases by minor version, newer ones first.
	Groups []ReleaseGroup `json:"groups"`
	// Invalid are updates that are in no group.
	Invalid []InvalidVersion `json:"invalid,omitempty"`
	// Target is the one release that was asked for, empty for all.
	Target string `json:"target,omitempty"`
	// Issues are what speaks against an update now, and the known issues of the
	// target, by name.
	Issues []Issue `json:"issues"`
}

// ReleaseGroup are the releases of a minor version, newer ones first. It is plain
// data.
type ReleaseGroup struct {
	Major    uint64      `json:"major"`
	Minor    uint64      `json:"minor"`
	Releases []Candidate `json:"releases"`
}

// Candidate is a release to update to and its known issue. It is plain data.
type Candidate struct {
	Release
	// Issue is why the release is not recommended; nil without known issues that
	// matter to the cluster. The risks say what it is made of.
	Issue *Condition `json:"issue,omitempty"`
	// Accepted reports that the issue was accepted in advance.
	Accepted bool `json:"accepted,omitempty"`
}

// InvalidVersion is an update whose version is not one. It is plain data.
type InvalidVersion struct {
	Version string `json:"version"`
	Image   string `json:"image"`
	Error   string `json:"error"`
}

// Issue speaks against an update. It is plain data.
type Issue struct {
	// Name is Failing, Progressing, FailedToCompletePrecheck, CannotRetrieveUpdates,
	// ConditionalUpdateRisk, or what a precheck calls it.
	Name     string `json:"name"`
	Accepted bool   `json:"accepted"`
}

// Names of issues, but for those of prechecks.
const (
	issueFailing         = "Failing"                  // the cluster is failing, or nobody knows
	issueProgressing     = "Progressing"              // an update is in progress
	issuePrecheck        = "FailedToCompletePrecheck" // a check could not be made
	issueRetrieve        = "CannotRetrieveUpdates"    // the list of updates is not fresh
	issueConditionalRisk = "ConditionalUpdateRisk"    // the target has known issues
)

// RecommendInput is what recommendations are computed from. It is only read. It is
// plain data.
type RecommendInput struct {
	ClusterVersion *configv1.ClusterVersion
	Prechecks      []Precheck // what checks found
	Version        string     // the one release to judge; empty means all
	Accept         []string   // names of issues to put up with
}

// AssessRecommend computes what speaks for and against the updates of a cluster.
// It fails without a ClusterVersion, and where Version is not a version. It can be
// called concurrently.
func AssessRecommend(in RecommendInput) (*Recommend, error) {
	if in.Version != "" {
		if _, err := openshift.ParseVersion(in.Version); err != nil {
			return nil, fmt.Errorf("cannot parse SemVer target %q: %w", in.Version, err)
		}
	}
	cv := in.ClusterVersion
	if cv == nil {
		return nil, errNoClusterVersion
	}
	r := &Recommend{
		Version:          cv.Status.Desired.Version,
		Failing:          conditionOf(cv, failing),
		Progressing:      conditionOf(cv, configv1.OperatorProgressing),
		RetrievedUpdates: conditionOf(cv, configv1.RetrievedUpdates),
		Upgradeable:      conditionOf(cv, configv1.OperatorUpgradeable),
		Prechecks:        []PrecheckCondition{},
		Channel:          channelOf(cv),
		Groups:           []ReleaseGroup{},
		Target:           in.Version,
		Issues:           []Issue{},
	}
	accept := make(map[string]bool, len(in.Accept))
	for _, name := range in.Accept {
		accept[name] = true
	}
	r.addPrechecks(in.Prechecks, accept)
	r.addReleases(cv)
	for _, group := range r.Groups {
		for i := range group.Releases {
			c := &group.Releases[i]
			c.Issue = issueOf(&c.Release)
			c.Accepted = c.Issue != nil && accept[issueConditionalRisk]
		}
	}
	r.addIssues(accept)
	return r, nil
}

// addPrechecks collects the findings.
func (r *Recommend) addPrechecks(prechecks []Precheck, accept map[string]bool) {
	for _, check := range prechecks {
		for _, c := range check.Conditions {
			if c.AcceptanceName == "" {
				c.AcceptanceName = c.Type
			}
			c.Accepted = c.Status != statusTrue && accept[c.AcceptanceName]
			r.Prechecks = append(r.Prechecks, c)
		}
		if check.Err != nil {
			r.PrecheckErrors = append(r.PrecheckErrors, check.Err.Error())
		}
	}
}

// addIssues names what speaks against an update.
func (r *Recommend) addIssues(accept map[string]bool) {
	names := []string{}
	if !r.Failing.is(statusFalse) {
		names = append(names, issueFailing)
	}
	if r.isProgressing() {
		names = append(names, issueProgressing)
	}
	if len(r.PrecheckErrors) > 0 {
		names = append(names, issuePrecheck)
	}
	for _, c := range r.Prechecks {
		if c.Status != statusTrue {
			names = append(names, c.AcceptanceName)
		}
	}
	if r.RetrievedUpdates.isNot(statusTrue) {
		names = append(names, issueRetrieve)
	}
	if target, err := r.target(); err == nil && target != nil && target.Issue != nil {
		names = append(names, issueConditionalRisk)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		r.Issues = append(r.Issues, Issue{name, accept[name]})
	}
}

// isProgressing reports that an update is in progress and how far it is.
func (r *Recommend) isProgressing() bool {
	return r.Progressing.is(statusTrue) && r.Progressing.Message != ""
}

// accepted reports whether an issue is there and accepted.
func (r *Recommend) accepted(name string) bool {
	return slices.Contains(r.Issues, Issue{name, true})
}

// Err returns an error that explains why not to update to the target: it is not
// among the updates, or there are issues that were not accepted. It is nil where
// all releases were asked for.
func (r *Recommend) Err() error {
	target, err := r.target()
	if err != nil || target == nil {
		return err
	}
	var open []string
	for _, issue := range r.Issues {
		if !issue.Accepted {
			open = append(open, issue.Name)
		}
	}
	if len(open) > 0 {
		return errors.New("issues that apply to this cluster but which were not included in --accept: " + strings.Join(open, ","))
	}
	return nil
}

// target returns the release that was asked for, nil for all. It fails where the
// cluster cannot update to it.
func (r *Recommend) target() (*Candidate, error) {
	if r.Target == "" {
		return nil, nil
	}
	v, err := openshift.ParseVersion(r.Target)
	if err != nil {
		return nil, fmt.Errorf("cannot parse SemVer target %q: %w", r.Target, err)
	}
	if len(r.Groups) == 0 {
		return nil, fmt.Errorf("no updates available, so cannot display context for the requested release %s", r.Target)
	}
	hasMajor, hasMinor := false, false
	for _, group := range r.Groups {
		if group.Major != v.Major() {
			continue
		}
		hasMajor = true
		if group.Minor != v.Minor() {
			continue
		}
		hasMinor = true
		for i := range group.Releases {
			if group.Releases[i].Version == r.Target {
				return &group.Releases[i], nil
			}
		}
	}
	switch {
	case !hasMajor:
		return nil, fmt.Errorf("no updates to %d available, so cannot display context for the requested release %s", v.Major(), r.Target)
	case !hasMinor:
		return nil, fmt.Errorf("no updates to %d.%d available, so cannot display context for the requested release %s", v.Major(), v.Minor(), r.Target)
	}
	return nil, fmt.Errorf("no update to %s available, so cannot display context for the requested release", r.Target)
}
