//! Sentence vectors in bytes, compared by their direction.

/// A sentence vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    bytes: Box<[i8]>,
    length: f32,
}

impl Vector {
    /// None where it points nowhere.
    pub fn new(bytes: &[i8]) -> Option<Self> {
        let length = (dot(bytes, bytes) as f32).sqrt();
        (length > 0.0).then(|| Self {
            bytes: bytes.into(),
            length,
        })
    }

    /// 0 for vectors of another space.
    pub(super) fn cosine(&self, other: &Self) -> f32 {
        if self.bytes.len() != other.bytes.len() {
            return 0.0;
        }
        dot(&self.bytes, &other.bytes) as f32 / (self.length * other.length)
    }
}

fn dot(one: &[i8], other: &[i8]) -> i32 {
    let products = one.iter().zip(other);
    products.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
}

/// The sum of the directions of some vectors.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum(Vec<f32>);

impl Sum {
    pub(super) fn add(&mut self, vector: &Vector) {
        self.0.resize(self.0.len().max(vector.bytes.len()), 0.0);
        let parts = self.0.iter_mut().zip(&*vector.bytes);
        parts.for_each(|(sum, &x)| *sum += f32::from(x) / vector.length);
    }

    pub(super) fn cosine(&self, vector: &Vector) -> f32 {
        if self.0.len() != vector.bytes.len() {
            return 0.0;
        }
        let product: f32 = self
            .0
            .iter()
            .zip(&*vector.bytes)
            .map(|(x, &y)| x * f32::from(y))
            .sum();
        let length = self.0.iter().map(|x| x * x).sum::<f32>().sqrt();
        product / (length * vector.length).max(f32::MIN_POSITIVE)
    }
}
