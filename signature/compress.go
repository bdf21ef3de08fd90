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
// octets. Nothing may follow the end of the compressed stream.
func (i *inflaters) decompress(packet []byte, limit int) ([]byte, error) {
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
		end := bzip2End(packet[1:])
		if end < len(packet)-1 {
			return nil, fmt.Errorf("%d octets after the end of the compressed stream", len(packet)-1-end)
		}
		in.Reset(nil)
		r = smallBzip2(packet[1 : 1+end])
	default:
		return nil, fmt.Errorf("openpgp: unsupported feature: compression algorithm %d", algo)
	}
	data, err := readUpTo(r, limit)
	if err != nil {
		return nil, err
	}
	if in.Len() != 0 {
		return nil, fmt.Errorf("%d octets after the end of the compressed stream", in.Len())
	}
	return data, nil
}

// readUpTo reads r to its end. The buffer grows in steps that keep the sum of
// all that is held below one and a quarter of the limit.
func readUpTo(r io.Reader, limit int) ([]byte, error) {
	buf := make([]byte, 0, min(limit+1, 2048))
	for {
		if len(buf) == cap(buf) {
			if len(buf) > limit {
				return nil, fmt.Errorf("decompressed message is larger than the limit of %d bytes", limit)
			}
			size := 8 * cap(buf)
			if size > limit/2 {
				size = limit + 1
			}
			grown := make([]byte, len(buf), size)
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

// maxBzip2Block is the limit on the blocks of a bzip2 stream, the smallest that
// the format has: what is compressed here has less than 1 kB.
const maxBzip2Block = 100_000

// smallBzip2 reads one bzip2 stream with blocks of at most maxBzip2Block bytes,
// whatever its header says: Go's reader reserves four times what that says at
// once, 3.6 MB for a message of 20 bytes.
func smallBzip2(stream []byte) io.Reader {
	if len(stream) < 4 || stream[3] <= '1' || stream[3] > '9' {
		return bzip2.NewReader(bytes.NewReader(stream))
	}
	head := []byte{stream[0], stream[1], stream[2], '1'}
	return blockLimit{bzip2.NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader(stream[4:])))}
}

// blockLimit describes what may be the reason of an error.
type blockLimit struct{ io.Reader }

func (b blockLimit) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if _, ok := errors.AsType[bzip2.StructuralError](err); ok {
		err = fmt.Errorf("%w (blocks have a limit of %d bytes)", err, maxBzip2Block)
	}
	return n, err
}

// bzip2End returns where the first bzip2 stream of data ends, or the length of
// data if it does not. Go's reader would join a second stream.
func bzip2End(data []byte) int {
	const magic, checksum = 0x177245385090, 32
	last := uint64(0) // 48 bits
	for i, octet := range data {
		for bit := range 8 {
			last = (last<<1 | uint64(octet>>(7-bit)&1)) & (1<<48 - 1)
			if last == magic {
				return min((8*i+bit+1+checksum+7)/8, len(data))
			}
		}
	}
	return len(data)
}
