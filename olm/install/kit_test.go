package install_test

import "github.com/clusterupdate/clusterupdate/olm/internal/olmtest"

// Short names for what nearly every test says.
const ns = olmtest.NS

type OperatorLine = olmtest.OperatorLine

var (
	contents       = olmtest.Contents
	readCatalog    = olmtest.ReadCatalog
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
