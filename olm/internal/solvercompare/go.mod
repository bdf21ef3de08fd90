module github.com/clusterupdate/clusterupdate/olm/internal/solvercompare

go 1.26.0

require (
	github.com/clusterupdate/clusterupdate v0.0.0
	github.com/go-air/gini v1.0.4
	pgregory.net/rapid v1.3.0
)

replace github.com/clusterupdate/clusterupdate => ../../..
