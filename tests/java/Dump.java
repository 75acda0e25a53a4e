import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Writes what Tokeniser finds: FOLDER TEXTS OUT, where a text is a line of code points in hex. */
public class Dump {
    public static void main(String[] arguments) throws IOException {
        for (int k = 0; k < arguments.length; k += 3) {
            dump(Paths.get(arguments[k]), Paths.get(arguments[k + 1]), Paths.get(arguments[k + 2]));
        }
    }

    static void dump(Path folder, Path texts, Path out) throws IOException {
        Tokeniser tokeniser = new Tokeniser(folder);
        List<String> all = new ArrayList<>();
        for (String line : Files.readAllLines(texts)) {
            StringBuilder text = new StringBuilder();
            for (String code : line.trim().split(" ")) {
                if (!code.isEmpty()) {
                    text.appendCodePoint(Integer.parseInt(code, 16));
                }
            }
            all.add(text.toString());
        }
        try (BufferedWriter file = Files.newBufferedWriter(out, StandardCharsets.US_ASCII)) {
            Tokeniser.Batch batch = tokeniser.batch(all);
            for (Object numbers : new Object[] {
                Arrays.toString(batch.features), Arrays.toString(batch.counts),
                Arrays.toString(batch.wordOffsets), Arrays.toString(batch.words),
                Arrays.toString(batch.textOffsets)}) {
                file.write(numbers + "\n");
            }
            for (String text : all) {
                // Java may be older than a character, and then does not know its form C.
                boolean known = text.codePoints().allMatch(Character::isDefined);
                file.write(known ? "" : "? ");
                for (String word : tokeniser.split(text)) {
                    for (int code : word.codePoints().toArray()) {
                        file.write(Integer.toHexString(code) + ".");
                    }
                    file.write(" ");
                }
                file.write("\n");
            }
        }
    }
}
