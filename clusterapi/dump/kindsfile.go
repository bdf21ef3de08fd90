package dump

import (
	"encoding/json"
	"fmt"
)

// kindsVersion is the formatVersion of kinds.json that this package knows.
const kindsVersion = 1

// recordedKinds is what kinds.json says: which kinds [Record] read, and of which
// it read all objects.
type recordedKinds struct {
	FormatVersion int            `json:"formatVersion"`
	Kinds         []recordedKind `json:"kinds"`
}

// recordedKind is one kind. Whole stands for all namespaces; without it, the
// kind is whole in Namespaces alone. Assumed is for one that was whole on the word of
// its reader alone.
type recordedKind struct {
	Group      string   `json:"group"`
	Version    string   `json:"version"`
	Kind       string   `json:"kind"`
	Resource   string   `json:"resource"`
	Namespaced bool     `json:"namespaced"`
	Whole      bool     `json:"whole"`
	Assumed    bool     `json:"assumed,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
}

// readKinds reads a kinds.json. A version that it does not know is an error.
func readKinds(data []byte) (*recordedKinds, error) {
	var version struct {
		FormatVersion int `json:"formatVersion"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, err
	}
	if version.FormatVersion != kindsVersion {
		return nil, fmt.Errorf("formatVersion %d is not known, only %d: no kind counts as whole", version.FormatVersion, kindsVersion)
	}
	k := &recordedKinds{}
	if err := json.Unmarshal(data, k); err != nil {
		return nil, err
	}
	for i, kind := range k.Kinds {
		if kind.Kind == "" || kind.Version == "" || kind.Resource == "" {
			return nil, fmt.Errorf("kinds[%d]: version, kind or resource is missing", i)
		}
	}
	return k, nil
}
