//! Tensors on the device: memory for them, and arrays of the host in and out.

use super::Device;
use crate::RuntimeError;
use crate::tensor::{HostTensor, Tensor, TensorDesc, TensorSpec};
use tilework_driver::HostLink;

impl<C: HostLink> Device<C> {
    /// Allocates a tensor. Its content is what was there before.
    ///
    /// # Errors
    /// A tensor that cannot be; no room, or shards that do not fit the cores.
    ///
    /// ```
    /// # use tilework_abi::board::Board;
    /// # use tilework_runtime::tensor::{HostTensor, TensorDesc};
    /// # use tilework_runtime::{DType, Device, DeviceConfig};
    /// # use tilework_sim::{Chip, ChipConfig};
    /// # let board = Board::P100;
    /// # let mut device = Device::open(Chip::new(ChipConfig::new(board))?, DeviceConfig::new(board))?;
    /// // A matrix of 40 x 50 as bfloat16 tiles in DRAM.
    /// let x = device.create_tensor("x", &TensorDesc::new([40, 50]))?;
    /// let values: Vec<f32> = (0..2000).map(|n| (n % 256) as f32).collect();
    /// device.write_tensor(&x, &HostTensor::from_values(&[40, 50], &values)?)?;
    /// let back = device.read_tensor_as(&x, DType::F32)?;
    /// assert_eq!(back.values::<f32>(), Some(values));
    /// device.free_tensor(&x)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_tensor(&mut self, name: &str, desc: &TensorDesc) -> Result<Tensor, RuntimeError> {
        self.alive()?;
        let spec = TensorSpec::new(desc)?;
        let buffer = self.memory.alloc(&spec.buffer_config(name))?;
        Ok(Tensor { spec, buffer })
    }

    /// Frees the memory of a tensor.
    ///
    /// # Errors
    /// A tensor that was freed before.
    pub fn free_tensor(&mut self, tensor: &Tensor) -> Result<(), RuntimeError> {
        Ok(self.memory.free(&tensor.buffer)?)
    }

    /// Writes an array to a tensor, converted, padded with zeros and tilized by the host.
    ///
    /// # Errors
    /// An array of another shape, or of elements without a conversion; a device that stopped.
    pub fn write_tensor(&mut self, tensor: &Tensor, array: &HostTensor) -> Result<(), RuntimeError> {
        self.write_tensor_padded(tensor, array, 0.0)
    }

    /// As [`Device::write_tensor`], with another padding: the neutral element of what follows, as
    /// minus infinity for a maximum.
    ///
    /// # Errors
    /// As [`Device::write_tensor`]; a padding that the type does not have.
    pub fn write_tensor_padded(&mut self, tensor: &Tensor, array: &HostTensor, pad: f64) -> Result<(), RuntimeError> {
        self.alive()?;
        self.upload(&tensor.buffer, &tensor.spec.encode(array, pad)?)
    }

    /// Reads the array that a tensor holds, in the tensor's type; block formats as float32.
    ///
    /// # Errors
    /// A device that stopped.
    pub fn read_tensor(&mut self, tensor: &Tensor) -> Result<HostTensor, RuntimeError> {
        self.read_tensor_as(tensor, tensor.spec.host_dtype())
    }

    /// As [`Device::read_tensor`], its elements converted.
    ///
    /// # Errors
    /// As [`Device::read_tensor`]; no such conversion.
    pub fn read_tensor_as(&mut self, tensor: &Tensor, dtype: crate::DType) -> Result<HostTensor, RuntimeError> {
        let pages = self.download(&tensor.buffer)?;
        Ok(tensor.spec.decode(&pages, dtype)?)
    }
}
