package ai.onnxruntime;

public class OrtEnvironment {
    public static OrtEnvironment getEnvironment() {
        return new OrtEnvironment();
    }

    public OrtSession createSession(String path, OrtSession.SessionOptions options) {
        return new OrtSession(path);
    }
}
