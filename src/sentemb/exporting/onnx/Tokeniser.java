import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * From texts to the inputs of query.onnx, document.onnx or model.onnx, as tokeniser.py makes them.
 *
 * <p>What a character is comes from characters.txt and not from the Java library, whose lower case
 * and white space are others. Needs Java 8 and nothing else.
 */
public final class Tokeniser {
    private static final int CAPITAL_SIGMA = 0x3a3, SIGMA = 0x3c3, FINAL_SIGMA = 0x3c2;

    private final Map<String, BitSet> characters = new HashMap<>();
    private final Map<Integer, Integer> lower = new HashMap<>();
    private final Map<String, Integer> trigrams = new HashMap<>(), words = new HashMap<>();
    private final Map<String, Integer> places = new HashMap<>(); // in vectors
    private float[][] vectors;
    private int firstNumber; // the feature of the first number of a vector
    private final String splitting;

    /** The inputs for some texts; the comments give the names that the models have for them. */
    public static final class Batch {
        public long[] features; // features
        public float[] counts; // counts
        public long[] wordOffsets; // word_offsets
        public long[] words; // words
        public long[] textOffsets; // text_offsets
    }

    /** Reads vocabulary.txt, characters.txt and vectors.bin, if there is one, in a folder. */
    public Tokeniser(Path folder) throws IOException {
        for (String line : lines(folder.resolve("characters.txt"))) {
            String[] entries = line.split(" ");
            BitSet set = new BitSet();
            for (int k = 1; k < entries.length; k++) {
                String[] parts = entries[k].split("[->]");
                int first = Integer.parseInt(parts[0], 16), last = Integer.parseInt(parts[1], 16);
                set.set(first, last + 1);
                for (int code = first; parts.length > 2 && code <= last; code++) {
                    lower.put(code, Integer.parseInt(parts[2], 16) + code - first);
                }
            }
            characters.put(entries[0], set);
        }
        String[] vocabulary = lines(folder.resolve("vocabulary.txt"));
        String[] first = vocabulary[0].split(" ");
        splitting = first[0];
        if (!splitting.matches("white-space|words|bare")) {
            throw new IOException("vocabulary.txt: unknown splitting " + splitting);
        }
        int trigramCount = Integer.parseInt(first[1]);
        firstNumber = first.length > 2
            ? trigramCount + Integer.parseInt(first[2]) : vocabulary.length - 1;
        for (int k = 0; k < firstNumber; k++) {
            (k < trigramCount ? trigrams : words).put(vocabulary[k + 1], k);
        }
        for (int k = firstNumber + 1; k < vocabulary.length; k++) {
            places.put(vocabulary[k], places.size());
        }
        if (!places.isEmpty()) {
            FloatBuffer numbers = ByteBuffer.wrap(Files.readAllBytes(folder.resolve("vectors.bin")))
                .order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
            vectors = new float[places.size()][numbers.remaining() / places.size()];
            for (float[] vector : vectors) {
                numbers.get(vector);
            }
        }
    }

    private static String[] lines(Path file) throws IOException {
        return new String(Files.readAllBytes(file), StandardCharsets.UTF_8).split("\n");
    }

    private boolean is(String property, int code) {
        return characters.get(property).get(code);
    }

    /** The words of a text. */
    public List<String> split(String text) {
        if (splitting.equals("bare")) {
            text = Normalizer.normalize(text, Normalizer.Form.NFC);
        }
        boolean runs = splitting.equals("words");
        List<String> found = new ArrayList<>();
        StringBuilder word = new StringBuilder();
        for (int code : lowerCase(text.codePoints().toArray())) {
            if (runs ? is("word", code) : !is("space", code)) {
                word.appendCodePoint(code);
            } else if (word.length() > 0) {
                found.add(word.toString());
                word.setLength(0);
            }
        }
        if (word.length() > 0) {
            found.add(word.toString());
        }
        if (splitting.equals("bare")) {
            found.replaceAll(this::withoutEdges);
        }
        return found;
    }

    private int[] lowerCase(int[] text) {
        List<Integer> found = new ArrayList<>();
        for (int k = 0; k < text.length; k++) {
            if (text[k] == CAPITAL_SIGMA) {
                boolean isFinal = casedFrom(text, k, -1) && !casedFrom(text, k, 1);
                found.add(isFinal ? FINAL_SIGMA : SIGMA);
            } else if (text[k] == 0x130) { // the only one with a lower case of two characters
                found.add((int) 'i');
                found.add(0x307);
            } else {
                found.add(lower.getOrDefault(text[k], text[k]));
            }
        }
        return found.stream().mapToInt(Integer::intValue).toArray();
    }

    /** Whether the next character in a direction that counts is cased. */
    private boolean casedFrom(int[] text, int place, int direction) {
        do {
            place += direction;
        } while (place >= 0 && place < text.length && is("ignored", text[place]));
        return place >= 0 && place < text.length && is("cased", text[place]);
    }

    private String withoutEdges(String word) {
        int low = 0, high = word.length(); // these signs are single chars
        while (low < high && is("before", word.charAt(low))) {
            low++;
        }
        while (low < high && is("after", word.charAt(high - 1))) {
            high--;
        }
        return low < high ? word.substring(low, high) : word;
    }

    /**
     * The features of a word that the model knows, and how often the word has each; those of word
     * vectors with the numbers of the word's vector.
     */
    public TreeMap<Integer, Float> features(String word) {
        TreeMap<Integer, Float> found = new TreeMap<>();
        int[] marked = ("#" + word + "#").codePoints().toArray();
        for (int k = 0; k + 3 <= marked.length; k++) {
            Integer row = trigrams.get(new String(marked, k, 3));
            if (row != null) {
                found.merge(row, 1f, Float::sum);
            }
        }
        if (words.containsKey(word)) {
            found.put(words.get(word), 1f);
        }
        Integer place = places.containsKey(word) ? places.get(word) : places.get(withoutEdges(word));
        if (place != null) {
            for (int k = 0; k < vectors[place].length; k++) {
                found.put(firstNumber + k, vectors[place][k]);
            }
        }
        return found;
    }

    /** The inputs for some texts. */
    public Batch batch(List<String> texts) {
        Map<String, Integer> places = new LinkedHashMap<>();
        List<Integer> tokens = new ArrayList<>(), rows = new ArrayList<>();
        List<Float> counts = new ArrayList<>();
        List<Integer> textOffsets = new ArrayList<>(), wordOffsets = new ArrayList<>();
        textOffsets.add(0);
        for (String text : texts) {
            for (String word : split(text)) {
                places.putIfAbsent(word, places.size());
                tokens.add(places.get(word));
            }
            textOffsets.add(tokens.size());
        }
        wordOffsets.add(0);
        for (String word : places.keySet()) {
            TreeMap<Integer, Float> found = features(word);
            rows.addAll(found.keySet());
            counts.addAll(found.values());
            wordOffsets.add(rows.size());
        }
        Batch batch = new Batch();
        batch.features = longs(rows);
        batch.counts = new float[counts.size()];
        for (int k = 0; k < batch.counts.length; k++) {
            batch.counts[k] = counts.get(k);
        }
        batch.wordOffsets = longs(wordOffsets);
        batch.words = longs(tokens);
        batch.textOffsets = longs(textOffsets);
        return batch;
    }

    private static long[] longs(List<Integer> numbers) {
        return numbers.stream().mapToLong(Integer::longValue).toArray();
    }
}
