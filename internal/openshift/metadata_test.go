package openshift_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

func TestDecode(t *testing.T) {
	m, err := openshift.DecodeMetadata([]byte(`{"kind":"cincinnati-metadata-v0","VERSION":"4.20.1-rc.1+x","previous":["a"],"next":null,"metadata":{"a":[1]},"other":1}`))
	if err != nil || m.Semver.Prerelease() != "rc.1" || len(m.Previous) != 1 || m.Next != nil || m.Metadata["a"] == nil {
		t.Error(m, err)
	}
	for data, want := range map[string]string{
		``:     "unmarshal Cincinnati metadata: ",
		`[]`:   "unmarshal Cincinnati metadata: ",
		`{} x`: "unmarshal Cincinnati metadata: ",
		`{}`:   `unrecognized Cincinnati metadata kind ""`,
		`{"kind":"cincinnati-metadata-v0","metadata":[]}`:                "unmarshal Cincinnati metadata: ",
		`{"kind":"cincinnati-metadata-v0","next":[5]}`:                   "unmarshal Cincinnati metadata: ",
		`{"kind":"cincinnati-metadata-v0","version":""}`:                 "missing required Cincinnati metadata version",
		`{"kind":"cincinnati-metadata-v0","version":" 4.20.1"}`:          `invalid Cincinnati metadata version " 4.20.1": `,
		`{"kind":"cincinnati-metadata-v0","version":"4.20.1-01"}`:        `invalid Cincinnati metadata version "4.20.1-01": `,
		`{"kind":"cincinnati-metadata-v0","version":"4.20.1-"}`:          `invalid Cincinnati metadata version "4.20.1-": `,
		`{"kind":"cincinnati-metadata-v0","version":"4.20.1.5"}`:         `invalid Cincinnati metadata version "4.20.1.5": `,
		`{"kind":"cincinnati-metadata-v0","version":"04.20.1"}`:          `invalid Cincinnati metadata version "04.20.1": `,
		`{"kind":"cincinnati-metadata-v0","version":"4.20.1","next":{}}`: "unmarshal Cincinnati metadata: ",
	} {
		if _, err := openshift.DecodeMetadata([]byte(data)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestKnown(t *testing.T) {
	m := openshift.Metadata{Metadata: map[string]any{
		openshift.KeyURL: nil, openshift.KeyArchitecture: true, openshift.KeyChannels: map[string]any{},
	}}
	want := []string{
		"metadata io.openshift.upgrades.graph.release.channels is an object, not a string: ignored",
		"metadata release.openshift.io/architecture is a boolean, not a string: ignored",
		"metadata url is null, not a string: ignored",
	}
	checktest.Same(t, openshift.KnownMetadata{Warnings: want}, m.Known())
	m.Metadata = map[string]any{openshift.KeyURL: 1.0, openshift.KeyArchitecture: "multi", openshift.KeyChannels: ",b,a,b,"}
	got := m.Known()
	checktest.FailIf(t, !got.Multi || len(got.Warnings) != 1 || strings.Join(got.Channels, " ") != "a b b",
		"%+v", got)
}

func FuzzDecodeMetadata(f *testing.F) {
	f.Add([]byte(`{"kind":"cincinnati-metadata-v0","version":"4.20.1","metadata":{"url":"x"}}`))
	f.Add([]byte(`{"kind":5}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := openshift.DecodeMetadata(data)
		if (m == nil) == (err == nil) {
			t.Fatal(m, err)
		}
		if m != nil {
			m.Known()
		}
	})
}
