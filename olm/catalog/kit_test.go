package catalog_test

import "github.com/clusterupdate/clusterupdate/olm/internal/olmtest"

// Short names for what nearly every test says.
const (
	ns            = olmtest.NS
	searchCatalog = olmtest.SearchCatalog
)

type OperatorLine = olmtest.OperatorLine

var (
	contents       = olmtest.Contents
	readCatalog    = olmtest.ReadCatalog
	channelCatalog = olmtest.ChannelCatalog
	community      = olmtest.Community
	entryNames     = olmtest.EntryNames
	entries        = olmtest.Entries
	problemTexts   = olmtest.ProblemTexts
	places         = olmtest.Places
	property       = olmtest.Property
)
