package sigstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/signature"
)

// payloadType is the only type of payload that vouches for an image.
const payloadType = "cosign container image signature"

// statement is the signed statement of a cosign signature.
type statement struct {
	Type      string
	Digest    string // of the image's manifest
	Reference string // the name that it was signed under
	Creator   string // optional; as the signer says
	Timestamp time.Time
}

// MarshalPayload writes the statement that digest was published under
// reference, as cosign does, for signing. Its error is one of encoding.
func MarshalPayload(digest, reference string) ([]byte, error) {
	if err := signature.ValidateDigestStrict(digest); err != nil {
		return nil, err
	}
	if _, err := parseReference(reference); err != nil {
		return nil, fmt.Errorf("reference %q: %w", reference, err)
	}
	type object = map[string]any
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Critical any `json:"critical"`
		Optional any `json:"optional"`
	}{Critical: struct {
		Identity object `json:"identity"`
		Image    object `json:"image"`
		Type     string `json:"type"`
	}{object{"docker-reference": reference}, object{"docker-manifest-digest": digest}, payloadType}})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// parsePayload decodes the JSON of a payload in its strict form: exactly the keys
// of the format, spelt exactly, each once; only "optional" may be null or hold
// more. It decides nothing about trust. Anything else is an error that reports
// what.
func parsePayload(data []byte) (*statement, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("invalid UTF-8")
	}
	top, err := exactly(data, "critical", "optional")
	if err != nil {
		return nil, err
	}
	critical, err := exactly(top["critical"], "type", "image", "identity")
	if err != nil {
		return nil, fmt.Errorf("critical: %w", err)
	}
	image, err := exactly(critical["image"], "docker-manifest-digest")
	if err != nil {
		return nil, fmt.Errorf("critical.image: %w", err)
	}
	identity, err := exactly(critical["identity"], "docker-reference")
	if err != nil {
		return nil, fmt.Errorf("critical.identity: %w", err)
	}
	p := &statement{}
	for _, f := range []struct {
		path string
		raw  json.RawMessage
		to   *string
	}{
		{"critical.type", critical["type"], &p.Type},
		{"critical.image.docker-manifest-digest", image["docker-manifest-digest"], &p.Digest},
		{"critical.identity.docker-reference", identity["docker-reference"], &p.Reference},
	} {
		*f.to, err = text(f.raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if string(bytes.TrimSpace(top["optional"])) != "null" {
		if err := p.optional(top["optional"]); err != nil {
			return nil, fmt.Errorf("optional: %w", err)
		}
	}
	if p.Type != payloadType {
		return nil, fmt.Errorf("type is %q, not %q", short(p.Type), payloadType)
	}
	if err := signature.ValidateDigestStrict(p.Digest); err != nil {
		return nil, err
	}
	if p.Reference == "" {
		return nil, errors.New("critical.identity.docker-reference is empty")
	}
	return p, nil
}

func (p *statement) optional(raw json.RawMessage) error {
	members, err := object(raw)
	if err != nil {
		return err
	}
	if v, ok := members["creator"]; ok {
		p.Creator, err = text(v)
		if err != nil {
			return fmt.Errorf("creator: %w", err)
		}
	}
	if v, ok := members["timestamp"]; ok {
		seconds, err := integral(v)
		if err != nil {
			return fmt.Errorf("timestamp: %w", err)
		}
		p.Timestamp = time.Unix(seconds, 0).UTC()
	}
	return nil
}

// exactly decodes an object that has just these keys.
func exactly(raw []byte, keys ...string) (map[string]json.RawMessage, error) {
	members, err := object(raw)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if _, ok := members[k]; !ok {
			return nil, fmt.Errorf("no key %q", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(keys, k) {
			return nil, fmt.Errorf("unknown key %q", short(k))
		}
	}
	return members, nil
}

// object splits a JSON object, and nothing after it. No key may occur twice.
func object(raw []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("invalid JSON: %w", err)
		}
		key, ok := t.(string)
		if !ok {
			return nil, errors.New("invalid JSON: a key is not text")
		}
		if _, ok := members[key]; ok {
			return nil, fmt.Errorf("duplicate key %q", short(key))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("invalid JSON: %w", err)
		}
		members[key] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if strings.Trim(string(raw[d.InputOffset():]), " \t\r\n") != "" {
		return nil, errors.New("data after the JSON object")
	}
	return members, nil
}

func text(raw json.RawMessage) (string, error) {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", errors.New("not a text")
	}
	return *s, nil
}

// integral reads a number without a fraction, however it is written: 1e3 is one,
// 1.5 is not.
func integral(raw json.RawMessage) (int64, error) {
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil || len(raw) == 0 || raw[0] == '"' || n == "" {
		return 0, errors.New("not a number")
	}
	if len(n) > 40 {
		return 0, errors.New("number is too long")
	}
	if i := strings.IndexAny(string(n), "eE"); i >= 0 && len(strings.TrimLeft(string(n[i+1:]), "+-0")) > 2 {
		return 0, errors.New("exponent is too large")
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, errors.New("not an integral number of seconds")
	}
	return r.Num().Int64(), nil
}
