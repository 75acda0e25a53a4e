package ai.onnxruntime;

public interface OnnxValue {
    Object getValue() throws OrtException;
}
