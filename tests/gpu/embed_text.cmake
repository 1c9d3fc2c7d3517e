# One text file as a C array that ends in NUL: cmake -DINPUT=a.cu -DOUTPUT=a.h -DNAME=a_text -P embed_text.cmake
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "((0x..,){16})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Generated. */\nstatic const char ${NAME}[] = {\n${bytes}0};\n")
