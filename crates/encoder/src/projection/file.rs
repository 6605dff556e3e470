//! The file form of a projection: a header, the matrix as little-endian floats, and a hash of both.

use super::Projection;
use crate::error::Error;

/// First bytes of every file; the digit is the version of the form.
const MAGIC: &[u8; 8] = b"MFPROJ1\n";
const HEADER: usize = MAGIC.len() + 4;
const HASH: usize = blake3::OUT_LEN;

impl Projection {
    /// Checks the sizes; `matrix` is row-major, `to × from`.
    pub fn new(from: usize, to: usize, matrix: Vec<f32>) -> Result<Self, Error> {
        let fits = |size: usize| (1..=usize::from(u16::MAX)).contains(&size);
        if !fits(from) || !fits(to) || to > from || matrix.len() != from * to {
            let given = matrix.len();
            return Err(Error::Projection(format!(
                "{given} values make no {to} × {from} matrix"
            )));
        }
        Ok(Self { from, to, matrix })
    }

    /// The file form: magic, sizes as u16, `to × from` floats, BLAKE3 of all before; little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + 4 * self.matrix.len() + HASH);
        bytes.extend_from_slice(MAGIC);
        for size in [self.from, self.to] {
            let size = u16::try_from(size).expect("checked when the projection was made");
            bytes.extend_from_slice(&size.to_le_bytes());
        }
        bytes.extend(self.matrix.iter().flat_map(|x| x.to_le_bytes()));
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        bytes
    }

    /// Reads the file form and checks its hash.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let body = bytes.len().checked_sub(HASH).filter(|&body| body >= HEADER);
        let (body, hash) = bytes.split_at(body.ok_or_else(|| damaged("too short"))?);
        if !body.starts_with(MAGIC) {
            return Err(damaged("not a projection of this version"));
        }
        if blake3::hash(body).as_bytes() != hash {
            return Err(damaged("hash does not match"));
        }
        let size = |at: usize| usize::from(u16::from_le_bytes([body[at], body[at + 1]]));
        let (floats, rest) = body[HEADER..].as_chunks::<4>();
        if !rest.is_empty() {
            return Err(damaged("cut inside a number"));
        }
        let matrix = floats
            .iter()
            .map(|&float| f32::from_le_bytes(float))
            .collect();
        Self::new(size(MAGIC.len()), size(MAGIC.len() + 2), matrix)
    }

    /// Name of this very projection, for the recipe of an embedding space: first 16 hexadecimal digits of its hash.
    pub fn fingerprint(&self) -> String {
        let bytes = self.to_bytes();
        blake3::hash(&bytes).to_hex()[..16].to_owned()
    }
}

fn damaged(reason: &str) -> Error {
    Error::Projection(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Projection {
        Projection::new(3, 2, vec![1.0, 0.0, 0.5, 0.0, -1.0, 0.25]).unwrap()
    }

    #[test]
    fn bytes_read_back_to_the_same_projection() {
        assert_eq!(
            Projection::from_bytes(&sample().to_bytes()).unwrap(),
            sample()
        );
    }

    #[test]
    fn shipped_projections_are_intact() {
        for model in [
            "all-MiniLM-L6-v2",
            "bge-small-en-v1.5",
            "e5-small-v2",
            "multilingual-e5-small",
        ] {
            let shipped = Projection::shipped(model).unwrap();
            let sizes = (shipped.input_dimensions(), shipped.dimensions());
            assert_eq!(sizes, (384, 64), "{model}");
        }
        assert!(Projection::shipped("another").is_none());
    }

    #[test]
    fn sizes_must_fit_the_matrix() {
        assert!(Projection::new(2, 3, vec![0.0; 6]).is_err());
        assert!(Projection::new(3, 2, vec![0.0; 5]).is_err());
    }

    proptest! {
        #[test]
        fn any_damage_is_refused(at in 0_usize..68, bit in 0_u8..8) {
            let mut bytes = sample().to_bytes();
            prop_assert_eq!(bytes.len(), 68);
            bytes[at] ^= 1 << bit;
            prop_assert!(Projection::from_bytes(&bytes).is_err());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Projection::from_bytes(&bytes).is_err());
        }
    }
}
