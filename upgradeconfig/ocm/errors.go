package ocm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// Failures, as users of the managed-upgrade operator know them. Each comes
// wrapped together with its cause.
var (
	// ErrAccessToken: nothing was asked, as what authenticates the cluster
	// cannot be read or is malformed.
	ErrAccessToken = errors.New("failed to retrieve cluster access token")
	// ErrProviderUnavailable: the cluster could not be looked up.
	ErrProviderUnavailable = errors.New("OCM Provider unavailable")
	// ErrNoClusterID: the look-up was answered, but not with one cluster that
	// has an ID.
	ErrNoClusterID = errors.New("OCM did not return a valid cluster ID: pull-secret may be invalid OR cluster's owner is disabled/banned in OCM")
	// ErrClusterNotFound: not exactly one cluster has the external ID, or the answer is
	// about another; comes with ErrNoClusterID.
	ErrClusterNotFound = errors.New("cluster id not found")
	// ErrRetrievingPolicies: the list of policies could not be read in full.
	ErrRetrievingPolicies = errors.New("could not retrieve provider upgrade policies")
	// ErrProcessingPolicies: the next policy cannot become an UpgradeConfig.
	ErrProcessingPolicies = errors.New("could not process provider upgrade policies")

	// ErrNoPolicy: there is nothing to notify about.
	ErrNoPolicy = errors.New("no policy matches the current UpgradeConfig")
	// ErrConvertState: OCM has a policy in an unknown state.
	ErrConvertState = errors.New("failed to convert OCM state")
)

// RequestError reports that OCM did not answer a request, or not as it should.
// Neither it nor anything that it wraps holds the access token.
type RequestError struct {
	Method, URL string
	// StatusCode of the answer, 0 if absent. 200 means that the body could not be
	// used.
	StatusCode int
	// OperationID is how OCM's operators find the request; empty if the
	// answer does not say.
	OperationID string
	// Code and Reason are what OCM says is wrong; empty if it does not.
	Code, Reason string
	// Err is the cause in addition to the status, or nil.
	Err error
}

func (e *RequestError) Error() string {
	return e.Method + " " + e.URL + ": " + e.detail()
}

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// detail is the error without the request.
func (e *RequestError) detail() string {
	var parts []string
	if e.StatusCode != 0 && e.StatusCode != http.StatusOK {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("status %d %s", e.StatusCode, http.StatusText(e.StatusCode))))
	}
	for _, s := range []string{e.Code, e.Reason} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	text := strings.Join(parts, ": ")
	if e.OperationID != "" {
		text += " (operation id " + e.OperationID + ")"
	}
	return text
}

// NotificationError reports that a notification did not reach OCM.
type NotificationError struct {
	State upgradeconfig.State
	Err   error
}

func (e *NotificationError) Error() string {
	return fmt.Sprintf("can't send notification '%s': %v", e.State, e.Err)
}

// Unwrap returns the cause.
func (e *NotificationError) Unwrap() error { return e.Err }
