package olm_test

import "github.com/clusterupdate/clusterupdate/olm/internal/olmtest"

// Short names for what nearly every test says.
const (
	ns            = olmtest.NS
	searchCatalog = olmtest.SearchCatalog
)

type OperatorLine = olmtest.OperatorLine

var (
	parseOperator  = olmtest.ParseOperator
	contents       = olmtest.Contents
	readLines      = olmtest.ReadLines
	readCatalog    = olmtest.ReadCatalog
	channelCatalog = olmtest.ChannelCatalog
	community      = olmtest.Community
	entryNames     = olmtest.EntryNames
	entries        = olmtest.Entries
	problemTexts   = olmtest.ProblemTexts
	places         = olmtest.Places
	property       = olmtest.Property
	version        = olmtest.Version
	installed      = olmtest.Installed
	newCSV         = olmtest.NewCSV
	maxed          = olmtest.Maxed
	atVersion      = olmtest.AtVersion
	inPhase        = olmtest.InPhase
	withReplaces   = olmtest.WithReplaces
	withAnnotation = olmtest.WithAnnotation
	sub            = olmtest.Sub
	named          = olmtest.Named
	channel        = olmtest.Channel
	source         = olmtest.Source
	startingCSV    = olmtest.StartingCSV
	snapshot       = olmtest.Snapshot
	members        = olmtest.Members
	resolve        = olmtest.Resolve
	outcome        = olmtest.Outcome
)
