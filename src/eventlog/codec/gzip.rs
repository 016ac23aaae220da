//! gzip (RFC 1952): what Databricks makes of the log files it has rotated, and
//! what people do to old logs. Many members may follow each other, and zeros
//! may follow the last.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::block::array;
use super::{Damage, Decode, Step};

const MAGIC: &[u8] = b"\x1f\x8b\x08";
const HEADER: usize = 10;
/// Checksum and length of what was compressed.
const TRAILER: usize = 8;

/// Flags of the header: which parts follow it.
const CHECKSUM: u8 = 0x02;
const EXTRA: u8 = 0x04;
const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;
const RESERVED: u8 = 0xe0;

pub(super) struct Gzip {
    at: At,
    flags: u8,
    /// The part of a header or trailer that is there.
    held: Vec<u8>,
    inflate: Decompress,
    checksum: Crc,
    /// What was inflated and not handed out yet is `inflated[given..]`.
    inflated: Vec<u8>,
    given: usize,
    /// The damage behind it.
    damage: Option<Damage>,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    /// Before a member, after another or none.
    Start,
    Header,
    ExtraLength,
    Extra(usize),
    Name,
    Comment,
    HeaderChecksum,
    Body,
    Trailer,
    Padding,
}

impl Default for Gzip {
    fn default() -> Self {
        Self {
            at: At::Start,
            flags: 0,
            held: Vec::with_capacity(HEADER),
            inflate: Decompress::new(false),
            checksum: Crc::new(),
            inflated: Vec::new(),
            given: 0,
            damage: None,
        }
    }
}

impl Gzip {
    /// Gathers a part of this many bytes from the input.
    fn gather(&mut self, input: &mut &[u8], size: usize) -> bool {
        let missing = size.saturating_sub(self.held.len()).min(input.len());
        self.held.extend_from_slice(&input[..missing]);
        *input = &input[missing..];
        self.held.len() >= size
    }

    /// The part that follows in the header, of those from `flag` on.
    fn next_part(&self, flag: u8) -> At {
        let parts = [
            (EXTRA, At::ExtraLength),
            (NAME, At::Name),
            (COMMENT, At::Comment),
            (CHECKSUM, At::HeaderChecksum),
        ];
        parts
            .into_iter()
            .skip_while(|(part, _)| *part != flag)
            .find(|(part, _)| self.flags & part != 0)
            .map_or(At::Body, |(_, at)| at)
    }

    /// One step through what stands around the compressed bytes; `false`
    /// where more input is needed.
    fn around(&mut self, input: &mut &[u8]) -> Result<bool, Damage> {
        match self.at {
            At::Start | At::Padding => match input.first() {
                None => return Ok(false),
                Some(0) if self.at == At::Padding => *input = &input[1..],
                Some(_) => self.at = At::Header,
            },
            At::Header => {
                if !self.gather(input, HEADER) {
                    return Ok(false);
                }
                let [flags] = array(&self.held, 3)?;
                if !self.held.starts_with(MAGIC) || flags & RESERVED != 0 {
                    return Err(Damage::new("what follows a gzip member is none"));
                }
                self.held.clear();
                self.flags = flags;
                self.at = self.next_part(EXTRA);
            }
            At::ExtraLength => {
                if !self.gather(input, 2) {
                    return Ok(false);
                }
                self.at = At::Extra(usize::from(u16::from_le_bytes(array(&self.held, 0)?)));
                self.held.clear();
            }
            At::Extra(left) => {
                let skipped = left.min(input.len());
                *input = &input[skipped..];
                self.at = At::Extra(left - skipped);
                if skipped < left {
                    return Ok(false);
                }
                self.at = self.next_part(NAME);
            }
            At::Name | At::Comment => {
                let Some(end) = memchr::memchr(0, input) else {
                    *input = &[];
                    return Ok(false);
                };
                *input = &input[end + 1..];
                self.at = self.next_part(if self.at == At::Name { COMMENT } else { CHECKSUM });
            }
            At::HeaderChecksum => {
                if !self.gather(input, 2) {
                    return Ok(false);
                }
                self.held.clear();
                self.at = At::Body;
            }
            At::Trailer => {
                if !self.gather(input, TRAILER) {
                    return Ok(false);
                }
                let sum = u32::from_le_bytes(array(&self.held, 0)?);
                let length = u32::from_le_bytes(array(&self.held, 4)?);
                if (sum, length) != (self.checksum.sum(), self.checksum.amount()) {
                    return Err(Damage::new("the checksum of a gzip member does not match"));
                }
                self.held.clear();
                self.checksum.reset();
                self.inflate.reset(false);
                self.at = At::Padding;
            }
            At::Body => {}
        }
        Ok(true)
    }
}

/// A step of inflating gives at most this; where it meets damage, what does
/// not fit into the output it is given is lost.
const WINDOW: usize = 32 * 1024;

impl Gzip {
    /// One step; what it gives is put into `output`, or aside where that is
    /// too small.
    fn inflate(&mut self, input: &[u8], output: &mut [u8], step: &mut Step) -> Result<(), Damage> {
        let (read_before, written_before) = (self.inflate.total_in(), self.inflate.total_out());
        let input = &input[step.read..];
        let direct = output.len() - step.written >= WINDOW;
        let room = if direct {
            &mut output[step.written..]
        } else {
            self.inflated.resize(WINDOW, 0);
            &mut self.inflated[..]
        };
        let status = self.inflate.decompress(input, room, FlushDecompress::None);
        let read = (self.inflate.total_in() - read_before) as usize;
        let size = (self.inflate.total_out() - written_before) as usize;
        self.checksum.update(&room[..size]);
        step.read += read;
        if direct {
            step.written += size;
        } else {
            self.inflated.truncate(size);
        }
        match status.map_err(|error| Damage::new(format!("a gzip member: {error}")))? {
            Status::StreamEnd => self.at = At::Trailer,
            _ if read == 0 && size == 0 && !input.is_empty() => {
                return Err(Damage::new("a gzip member does not go on"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Hands out what was put aside.
    fn give(&mut self, output: &mut [u8], step: &mut Step) {
        let rest = &self.inflated[self.given..];
        let size = rest.len().min(output.len() - step.written);
        output[step.written..step.written + size].copy_from_slice(&rest[..size]);
        step.written += size;
        self.given += size;
        if self.given == self.inflated.len() {
            self.inflated.clear();
            self.given = 0;
        }
    }
}

impl Decode for Gzip {
    fn decode(&mut self, input: &[u8], output: &mut [u8], step: &mut Step) -> Result<(), Damage> {
        loop {
            self.give(output, step);
            if step.written == output.len() {
                return Ok(());
            }
            if let Some(damage) = &self.damage {
                return Err(damage.clone());
            }
            if self.at == At::Body {
                let before = *step;
                self.damage = self.inflate(input, output, step).err();
                let idle = *step == before && self.inflated.is_empty() && self.at == At::Body;
                if idle && self.damage.is_none() {
                    return Ok(());
                }
            } else {
                let mut rest = &input[step.read..];
                let goes_on = self.around(&mut rest);
                step.read = input.len() - rest.len();
                if !goes_on? {
                    return Ok(());
                }
            }
        }
    }

    fn may_end(&self) -> bool {
        self.inflated.is_empty() && matches!(self.at, At::Start | At::Padding)
    }
}
