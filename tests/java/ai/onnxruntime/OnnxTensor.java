package ai.onnxruntime;

import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;

/** As in com.microsoft.onnxruntime, as far as the example needs it: holds what it is given. */
public class OnnxTensor implements OnnxValue {
    final Object numbers;

    private OnnxTensor(Object numbers, long[] shape, int size) throws OrtException {
        if (shape.length != 1 || shape[0] != size) {
            throw new OrtException();
        }
        this.numbers = numbers;
    }

    public static OnnxTensor createTensor(OrtEnvironment env, LongBuffer data, long[] shape)
            throws OrtException {
        return new OnnxTensor("int64 " + Arrays.toString(data.array()), shape, data.capacity());
    }

    public static OnnxTensor createTensor(OrtEnvironment env, FloatBuffer data, long[] shape)
            throws OrtException {
        return new OnnxTensor("float32 " + Arrays.toString(data.array()), shape, data.capacity());
    }

    @Override
    public Object getValue() {
        return numbers;
    }
}
