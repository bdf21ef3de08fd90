package testserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
)

// process is a program that ends with us at the latest: it watches its
// standard input, of which we have the other end.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when it has ended
	err  error         // why, then
}

// start runs a program that writes to a log file.
func start(log *os.File, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	var err error
	p.in, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ended returns an error when the process has ended, by itself or not.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended: %w", p.cmd.Path, errors.Join(p.err))
	default:
		return nil
	}
}

// kill ends the process at once and waits until it has ended.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // an error reports that it has ended
	<-p.done
}

// freePorts returns ports of the loopback interface that nobody listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all are held until the last one is found
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
