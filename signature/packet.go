package signature

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Packet tags of OpenPGP (RFC 9580, section 5).
const (
	tagSignature     = 2
	tagOnePass       = 4
	tagSecretKey     = 5
	tagPublicKey     = 6
	tagSecretSubkey  = 7
	tagCompressed    = 8
	tagLiteral       = 11
	tagUserID        = 13
	tagPublicSubkey  = 14
	tagUserAttribute = 17
)

// framing is how a packet's header says where the packet ends.
type framing int

const (
	definite framing = iota
	partial
	indeterminate
)

type packet struct {
	tag     byte
	framing framing
	body    []byte
}

var errNotBinary = errors.New("openpgp: invalid data: tag byte does not have MSB set")

// nextPacket splits off the first packet of data. Chunks of partial length, of
// any size, are joined. The error is io.EOF where data is empty and
// io.ErrUnexpectedEOF where it ends within the packet.
func nextPacket(data []byte) (p packet, rest []byte, err error) {
	if len(data) == 0 {
		return p, nil, io.EOF
	}
	head, rest := data[0], data[1:]
	if head&0x80 == 0 {
		return p, nil, errNotBinary
	}
	if head&0x40 == 0 {
		p.tag = head >> 2 & 0x0f
		if head&3 == 3 {
			p.framing, p.body = indeterminate, rest
			return p, nil, nil
		}
		size := 1 << (head & 3)
		if len(rest) < size {
			return p, nil, io.ErrUnexpectedEOF
		}
		n := uint64(0)
		for _, b := range rest[:size] {
			n = n<<8 | uint64(b)
		}
		p.body, rest, err = split(rest[size:], n)
		return p, rest, err
	}

	p.tag = head & 0x3f
	for {
		n, more, after, err := newLength(rest)
		if err != nil {
			return p, nil, err
		}
		chunk, after, err := split(after, n)
		if err != nil {
			return p, nil, err
		}
		rest = after
		switch {
		case more:
			p.framing = partial
			p.body = append(p.body, chunk...)
		case p.framing == partial:
			p.body = append(p.body, chunk...)
			return p, rest, nil
		default:
			p.body = chunk
			return p, rest, nil
		}
	}
}

// newLength reads a length of the newer packet format; more is true for a
// partial one.
func newLength(data []byte) (n uint64, more bool, rest []byte, err error) {
	if len(data) == 0 {
		return 0, false, nil, io.ErrUnexpectedEOF
	}
	b := data[0]
	switch {
	case b < 192:
		return uint64(b), false, data[1:], nil
	case b < 224:
		if len(data) < 2 {
			return 0, false, nil, io.ErrUnexpectedEOF
		}
		return uint64(b-192)<<8 + uint64(data[1]) + 192, false, data[2:], nil
	case b < 255:
		return 1 << (b & 0x1f), true, data[1:], nil
	}
	if len(data) < 5 {
		return 0, false, nil, io.ErrUnexpectedEOF
	}
	return uint64(binary.BigEndian.Uint32(data[1:])), false, data[5:], nil
}

func split(data []byte, n uint64) (head, tail []byte, err error) {
	if n > uint64(len(data)) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return data[:n:n], data[n:], nil
}

// mpi splits off the first multiprecision integer of data.
func mpi(data []byte) (value, rest []byte, err error) {
	if len(data) < 2 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	bits := uint64(binary.BigEndian.Uint16(data))
	return split(data[2:], (bits+7)/8)
}

// mpis reads exactly n multiprecision integers, and nothing after them.
func mpis(data []byte, n int) ([][]byte, error) {
	out := make([][]byte, n)
	var err error
	for i := range out {
		out[i], data, err = mpi(data)
		if err != nil {
			return nil, fmt.Errorf("multiprecision integer %d: %w", i+1, err)
		}
	}
	if len(data) != 0 {
		return nil, fmt.Errorf("%d octets after the last multiprecision integer", len(data))
	}
	return out, nil
}

// leftPad returns value with zeros in front, size octets long; nil where it is
// longer.
func leftPad(value []byte, size int) []byte {
	if len(value) == size {
		return value
	}
	if len(value) > size {
		return nil
	}
	out := make([]byte, size)
	copy(out[size-len(value):], value)
	return out
}
