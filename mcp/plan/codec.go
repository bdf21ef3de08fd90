package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// MaxBytes is the largest size, in bytes, of a plan, and of a plan together with
// its progress: they are kept in a ConfigMap, which an API server stores up to 1
// MiB.
const MaxBytes = 900 << 10

// SizeError says that a plan, or its record in the cluster, passes [MaxBytes].
type SizeError struct {
	What string // "plan" or "record"
	Size int    // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("the %s is %d bytes long; the limit is %d bytes (900 KiB)", e.What, e.Size, MaxBytes)
}

// Encode writes a plan as JSON, indented, with a newline at the end. It fails
// where the plan is not valid ([Plan.Validate]), with all that is wrong, and with
// a [*SizeError] where it is too large to be recorded.
func Encode(p Plan) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p); err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.ID, err)
	}
	if b.Len() > MaxBytes {
		return nil, &SizeError{What: "plan", Size: b.Len()}
	}
	return b.Bytes(), nil
}

// Decode reads a plan. It is strict: names are case-sensitive, and fields that
// are not known or come twice are errors, as is a newer format and all that
// [Plan.Validate] finds. All that is wrong comes together. Data past [MaxBytes]
// is a [*SizeError].
func Decode(data []byte) (Plan, error) {
	if len(data) > MaxBytes {
		return Plan{}, &SizeError{What: "plan", Size: len(data)}
	}
	// A newer format may have fields that this one does not know.
	var head struct {
		Version int `json:"version"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &head); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	if err := checkFormat("plan", head.Version, Format); err != nil {
		return Plan{}, err
	}
	var p Plan
	faults, err := kjson.UnmarshalStrict(data, &p)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	errs := make([]error, 0, len(faults))
	for _, f := range faults {
		errs = append(errs, fmt.Errorf("plan: %w", f))
	}
	if err := errors.Join(append(errs, p.Validate())...); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// checkFormat says what is wrong with a format version.
func checkFormat(what string, version, newest int) error {
	switch {
	case version > newest:
		return fmt.Errorf("%s has format version %d; this program reads versions up to %d", what, version, newest)
	case version < 1:
		return fmt.Errorf("%s has no format version: field version must be 1 to %d", what, newest)
	}
	return nil
}

// hash is what a record keeps of the plan's text.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
