package upgrade

// What the tests of package upgrade_test use.
type (
	Activity     = activity
	Situation    = situation
	Decision     = decision
	PhaseOptions = phaseOptions
	Validated    = validated
	Refreshed    = refreshed
	Schedule     = schedule
)

const (
	ActivityNone        = activityNone
	ActivityDecide      = activityDecide
	ActivityHealthCheck = activityHealthCheck
	ActivityValidate    = activityValidate
	ActivityRefresh     = activityRefresh
	ActivitySteps       = activitySteps
	ActivityGiveUp      = activityGiveUp
	ActivityWithdrawn   = activityWithdrawn
	HealthReference     = healthReference
)

var (
	CheckUpgradeable = checkUpgradeable
	Next             = decide
	Steps            = stepsOf
	NextStep         = nextStep
	StartStep        = startStep
	EndStep          = endStep
	GiveUp           = setFailed
	Due              = whenDue
	Overdue          = isOverdue
	Delayed          = isDelayed
	Commenced        = hasCommenced
	PrecedingVersion = precedingVersion
	Request          = request
)
