package ai.onnxruntime;

/** Thrown if a shape does not fit the numbers. */
public class OrtException extends Exception {
    private static final long serialVersionUID = 1;
}
