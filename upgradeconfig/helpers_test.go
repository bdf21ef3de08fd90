package upgradeconfig_test

import (
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
)

var (
	objectKey  = fixture.Key
	specA      = fixture.SpecA
	specB      = fixture.SpecB
	policies   = fixture.Policies
	object     = fixture.Object
	underWay   = fixture.UnderWay
	store      = fixture.Store
	setStatus  = fixture.SetStatus
	stored     = fixture.Stored
	newCluster = fixture.NewCluster
	at         = fixture.At
	serving    = fixture.Serving
	history    = fixture.History
	configMap  = fixture.ConfigMap
	errText    = fixture.Text
	data       = fixture.Data
)

func must[T any](v T, err error) T { return checktest.Must(v, err) }
