package ocm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
)

// Where the pull secret is, and what OCM calls itself in it.
const (
	pullSecretNamespace = "openshift-config"
	pullSecretName      = "pull-secret"
	pullSecretHost      = "cloud.openshift.com"
)

// readToken returns the access token of the cluster's pull secret, as it
// stands: OCM wants its base64. No error holds any of the secret.
func readToken(ctx context.Context, api clusterapi.Reader) (string, error) {
	secret, err := clusterapi.Get[corev1.Secret](ctx, api, clusterapi.Key(pullSecretNamespace, pullSecretName))
	if err != nil {
		return "", fmt.Errorf("cannot fetch pull secret: %w", err)
	}
	data, ok := secret.Data[corev1.DockerConfigJsonKey]
	if !ok {
		return "", fmt.Errorf("pull secret missing required key %s", corev1.DockerConfigJsonKey)
	}
	token, err := parsePullSecret(data)
	if err != nil {
		return "", err
	}
	return token, checkToken(token)
}

func parsePullSecret(data []byte) (string, error) {
	if len(data) > 1<<20 {
		return "", errors.New("unable to interpret decoded pull secret as json: it is larger than a secret can be")
	}
	var document map[string]json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &document); err != nil {
		return "", fmt.Errorf("unable to interpret decoded pull secret as json: %w", jsonFault(err))
	}
	var auths map[string]json.RawMessage
	if json.Unmarshal(document["auths"], &auths) != nil || auths == nil {
		return "", errors.New("unable to find auths section in pull secret")
	}
	var entry map[string]json.RawMessage
	if json.Unmarshal(auths[pullSecretHost], &entry) != nil || entry == nil {
		return "", fmt.Errorf("unable to find pull secret auth key '%s' in pull secret", pullSecretHost)
	}
	var token string
	if json.Unmarshal(entry["auth"], &token) != nil || token == "" {
		return "", errors.New("unable to find access auth token in pull secret")
	}
	return token, nil
}

// jsonFault is a decoder's error without what it quotes.
func jsonFault(err error) error {
	if ok, offset := kjson.SyntaxErrorOffset(err); ok {
		return fmt.Errorf("syntax error at byte %d", offset)
	}
	return errors.New("it is not an object")
}

// readClusterID returns how the cluster calls itself: OCM's external_id.
func readClusterID(ctx context.Context, api clusterapi.Reader) (string, error) {
	cv, err := clusterversion.Get(ctx, api)
	if err != nil {
		return "", fmt.Errorf("can't get clusterversion: %w", err)
	}
	id := string(cv.Spec.ClusterID)
	if !isUUID.MatchString(id) {
		return "", fmt.Errorf("the cluster ID %q of ClusterVersion version is not a UUID", id)
	}
	return id, nil
}

var isUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// checkToken sees that the token cannot be taken for anything else: after
// "CLUSTERID:", one that is not base64 would pass for an OAuth token, and go to
// a server that it is not meant for.
func checkToken(token string) error {
	_, err := base64.StdEncoding.DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") { // which the decoder skips
		return errors.New("the access token in the pull secret is not standard base64")
	}
	return nil
}
