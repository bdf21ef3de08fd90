package olm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/olmtest"
)

// Short names for what nearly every test says.
const (
	ns            = olmtest.NS
	searchCatalog = olmtest.SearchCatalog
)

type OperatorLine = olmtest.OperatorLine

var (
	parseOperator  = olmtest.ParseOperator
	contents       = olmtest.Contents
	readCatalog    = olmtest.ReadCatalog
	channelCatalog = olmtest.ChannelCatalog
	community      = olmtest.Community
	entryNames     = olmtest.EntryNames
	entries        = olmtest.Entries
	problemTexts   = olmtest.ProblemTexts
	places         = olmtest.Places
	property       = olmtest.Property
	installed      = olmtest.Installed
	newCSV         = olmtest.NewCSV
	maxed          = olmtest.Maxed
	withAnnotation = olmtest.WithAnnotation
	sub            = olmtest.Sub
	named          = olmtest.Named
	channel        = olmtest.Channel
	source         = olmtest.Source
	snapshot       = olmtest.Snapshot
	resolve        = olmtest.Resolve
)

func startingCSV(name string) func(*olmapi.Subscription) {
	return func(s *olmapi.Subscription) { s.Spec.StartingCSV = name }
}

// members returns the names of a generation's operators, sorted and joined.
func members(g *olm.Generation) string {
	var names []string
	for _, s := range g.Slots {
		if s.Current != nil {
			names = append(names, s.Current.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// outcome returns the members, or the error.
func outcome(s olm.Snapshot, o olm.Options) string {
	g, err := olm.Resolve(context.Background(), s, o)
	if err != nil {
		return fmt.Sprintf("error: %v", err)
	}
	return members(g)
}

func atVersion(v string) func(*olmapi.ClusterServiceVersion) {
	return func(c *olmapi.ClusterServiceVersion) { c.Spec.Version = v }
}

func inPhase(p string) func(*olmapi.ClusterServiceVersion) {
	return func(c *olmapi.ClusterServiceVersion) { c.Status.Phase = p }
}

func withReplaces(name string) func(*olmapi.ClusterServiceVersion) {
	return func(c *olmapi.ClusterServiceVersion) { c.Spec.Replaces = name }
}

func version(t testing.TB, text string) *semver.Version {
	t.Helper()
	v := checktest.Get(semver.Parse(text))(t)
	return &v
}
