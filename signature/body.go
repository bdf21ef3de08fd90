package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// bodyType is the only type of statement that vouches for a release image.
const bodyType = "atomic container signature"

// statement is the signed JSON document ("simple signing" of containers/image): it
// reports that an image with this digest was published under this reference. The
// fields are in the order of the files that release tools write.
type statement struct {
	Critical critical `json:"critical"`
	Optional optional `json:"optional"`
}

// critical is the part of a [statement] that a verifier must understand.
type critical struct {
	Type  string `json:"type"`
	Image struct {
		Digest string `json:"docker-manifest-digest"`
	} `json:"image"`
	Identity struct {
		// Reference is the name that the image was published under. It must
		// not be empty, but is compared with nothing: releases are used by
		// digest from any mirror.
		Reference string `json:"docker-reference"`
	} `json:"identity"`
}

// optional is the part of a [statement] that does not decide anything.
type optional struct {
	Creator string `json:"creator,omitempty"`
	// Timestamp is in seconds since 1970.
	Timestamp int64 `json:"timestamp,omitempty"`
}

// Body writes the statement that digest was published as reference, by
// creator at time t, in the way of `oc adm release new`: indented by two
// spaces. All four are required; one that is missing is an error.
func Body(digest, reference, creator string, t time.Time) ([]byte, error) {
	if digest == "" || reference == "" || creator == "" || t.IsZero() {
		return nil, errors.New("you must specify a signer, current timestamp, release digest, and pull spec to sign")
	}
	if err := validateDigest(digest); err != nil {
		return nil, err
	}
	var s statement
	s.Critical.Type = bodyType
	s.Critical.Image.Digest = digest
	s.Critical.Identity.Reference = reference
	s.Optional = optional{Creator: creator, Timestamp: t.Unix()}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parseBody decodes body and checks that it vouches for digest. Keys are
// matched exactly, each may occur once, none may be unknown;
// IgnoreUnknownOptional admits unknown ones inside "optional". body must be authentic already, since
// errors quote it.
func (o *OpenPGP) parseBody(body []byte, digest string) (*statement, error) {
	s, err := decodeBody(body, o.o.IgnoreUnknownOptional)
	switch {
	case err != nil:
		// It may quote keys, which may be as long as the message.
		if text := err.Error(); len(text) > maxErrorText {
			err = errors.New(bounded.Text(text, maxErrorText))
		}
		return nil, reject(NotJSON, err)
	case s.Critical.Type != bodyType:
		return nil, reject(WrongType, nil)
	case s.Critical.Identity.Reference == "":
		return nil, reject(NoIdentity, nil)
	case s.Critical.Image.Digest != digest:
		return nil, &Rejection{Reason: WrongDigest, SignedDigest: s.Critical.Image.Digest}
	}
	return s, nil
}

func decodeBody(body []byte, ignoreOptional bool) (*statement, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("invalid UTF-8")
	}
	var s statement
	if !ignoreOptional {
		return &s, strictErr(kjson.UnmarshalStrict(body, &s))
	}
	// Optional is decoded on its own, so that a top-level key of the name
	// "optional.x" is still refused.
	var outer struct {
		Critical critical        `json:"critical"`
		Optional json.RawMessage `json:"optional"`
	}
	if err := strictErr(kjson.UnmarshalStrict(body, &outer)); err != nil {
		return nil, err
	}
	s.Critical = outer.Critical
	if len(outer.Optional) > 0 {
		// A map finds unknown keys that occur twice, too.
		if err := strictErr(kjson.UnmarshalStrict(outer.Optional, &map[string]any{}, kjson.DisallowDuplicateFields)); err != nil {
			return nil, fmt.Errorf("optional: %w", err)
		}
		if err := strictErr(kjson.UnmarshalStrict(outer.Optional, &s.Optional, kjson.DisallowDuplicateFields)); err != nil {
			return nil, fmt.Errorf("optional: %w", err)
		}
	}
	return &s, nil
}

// strictErr joins the two results of kjson.UnmarshalStrict: duplicate and
// unknown keys are only in the first.
func strictErr(strict []error, err error) error {
	if err != nil {
		return err
	}
	return bounded.Errors(strict...)
}
