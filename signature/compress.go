package signature

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"sync"
)

// inflaters keeps decompressors, which are large, for use by the next message.
type inflaters struct{ pool sync.Pool }

// decompress returns the content of a compressed packet of at most limit
// octets. Nothing may follow the end of the compressed stream, unless trailing
// lets it.
func (i *inflaters) decompress(packet []byte, limit int, trailing bool) ([]byte, error) {
	if len(packet) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	algo := packet[0]
	in := bytes.NewReader(packet[1:]) // an io.ByteReader, so that no more is read than used
	var r io.Reader
	switch algo {
	case 1:
		f, ok := i.pool.Get().(io.ReadCloser)
		if !ok {
			f = flate.NewReader(in)
		} else if err := f.(flate.Resetter).Reset(in, nil); err != nil {
			return nil, err
		}
		defer i.pool.Put(f)
		r = f
	case 2:
		z, err := zlib.NewReader(in)
		if err != nil {
			return nil, err
		}
		r = z
	case 3:
		if joinedBzip2(packet[1:]) {
			return nil, errors.New("data after the end of the compressed stream")
		}
		r = bzip2.NewReader(in)
	default:
		return nil, fmt.Errorf("openpgp: unsupported feature: compression algorithm %d", algo)
	}
	data, err := readUpTo(r, limit)
	if err != nil {
		return nil, err
	}
	if in.Len() != 0 && !trailing {
		return nil, fmt.Errorf("%d octets after the end of the compressed stream", in.Len())
	}
	return data, nil
}

// readUpTo reads r to its end. The buffer grows in steps that keep the sum of
// all that is held below one and a half times the limit.
func readUpTo(r io.Reader, limit int) ([]byte, error) {
	buf := make([]byte, 0, min(limit+1, 2048))
	for {
		if len(buf) == cap(buf) {
			if len(buf) > limit {
				return nil, fmt.Errorf("decompressed message is larger than the limit of %d bytes", limit)
			}
			grown := make([]byte, len(buf), min(limit+1, 4*cap(buf)))
			copy(grown, buf)
			buf = grown
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return nil, fmt.Errorf("decompressed message is larger than the limit of %d bytes", limit)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// joinedBzip2 reports whether a second bzip2 stream starts within data: Go's
// reader would join them.
func joinedBzip2(data []byte) bool {
	for i := 1; i+10 <= len(data); i++ {
		if !bytes.HasPrefix(data[i:], []byte("BZh")) {
			continue
		}
		switch string(data[i+4 : i+10]) {
		case "\x31\x41\x59\x26\x53\x59", "\x17\x72\x45\x38\x50\x90":
			return true
		}
	}
	return false
}
