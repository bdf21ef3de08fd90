package rhel_test

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// instant is a clock on which every wait is over at once.
type instant struct{ *reconcile.Clock }

func (c instant) NewTimer(time.Duration) clock.Timer {
	t := &over{make(chan time.Time, 1)}
	t.c <- c.Now()
	return t
}

type over struct{ c chan time.Time }

func (t *over) C() <-chan time.Time      { return t.c }
func (t *over) Stop() bool               { return true }
func (t *over) Reset(time.Duration) bool { return true }
