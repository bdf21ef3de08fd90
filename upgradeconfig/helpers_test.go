package upgradeconfig_test

import (
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
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
)

func must[T any](v T, err error) T { return fixture.Must(v, err) }

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// data is that of an event.
func data(e clusterapi.Event) *upgradeconfig.EventData { return e.Data.(*upgradeconfig.EventData) }
